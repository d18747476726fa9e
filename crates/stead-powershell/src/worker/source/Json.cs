// Values -> JSON. What goes out can be put in again, and nothing is cut, and no secret is shown: what has no JSON form is an error.
using System;
using System.Collections;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Management.Automation;
using System.Management.Automation.Language;
using System.Net;
using System.Net.Mail;
using System.Numerics;
using System.Reflection;
using System.Security;
using System.Text;
using System.Text.Encodings.Web;
using System.Text.RegularExpressions;
using System.Xml;

namespace SteadWorker
{
    internal sealed class Json
    {
        private const int MostLevels = 64;
        private const int LongestMessage = 1048576;
        private static readonly CultureInfo Invariant = CultureInfo.InvariantCulture;
        private static readonly Dictionary<Type, PropertyInfo[]> DeclaredOf = new Dictionary<Type, PropertyInfo[]>();
        private readonly List<object> above = new List<object>();

        internal static string Of(object value) { return new Json().Node(value, "$"); }

        private static string Text(string text, string path)
        {
            if (LoneSurrogate(text, 0) >= 0) throw new FormatException(path + ": the string is not valid Unicode (lone surrogate)");
            return "\"" + JavaScriptEncoder.UnsafeRelaxedJsonEscaping.Encode(text) + "\"";
        }

        private static int LoneSurrogate(string text, int from)
        {
            for (int index = from; index < text.Length; index++)
            {
                if (!char.IsSurrogate(text[index])) continue;
                if (index + 1 == text.Length || !char.IsSurrogatePair(text[index], text[index + 1])) return index;
                index++;
            }
            return -1;
        }

        // For messages: what is not valid becomes U+FFFD, and what is very long is cut behind a line, since whoever covers secrets
        // in it could not recognize the part of one.
        internal static string Message(string text)
        {
            if (text == null) return "\"\"";
            if (text.Length > LongestMessage) text = text.Substring(0, Math.Max(text.LastIndexOf('\n', LongestMessage), 0)) + "...";
            int lone = LoneSurrogate(text, 0);
            if (lone >= 0)
            {
                StringBuilder valid = new StringBuilder(text);
                for (; lone >= 0; lone = LoneSurrogate(text, lone + 1)) valid[lone] = '\ufffd';
                text = valid.ToString();
            }
            return Text(text, "$");
        }

        private static string Number(double value, string shortest)
        {
            if (double.IsNaN(value)) return "\"NaN\"";
            if (double.IsInfinity(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
            if (shortest.Contains('.') || shortest.Contains('E')) return shortest.Replace("E+", "e").Replace("E", "e");
            return shortest + ".0";
        }

        private static string Decimal(decimal value)
        {
            if (value == decimal.Truncate(value)) return Integer((BigInteger)value);
            string text = value.ToString(Invariant).TrimEnd('0');
            decimal back;
            // A number where the double nearest to it has the same digits, else a string.
            string nearest = double.Parse(text, Invariant).ToString("R", Invariant);
            return decimal.TryParse(nearest, NumberStyles.Float, Invariant, out back) && back == value ? text : "\"" + text + "\"";
        }

        private static string Integer(BigInteger value)
        {
            string text = value.ToString(Invariant);
            return value >= long.MinValue && value <= ulong.MaxValue ? text : "\"" + text + "\"";
        }

        private static string Date(DateTime value)
        {
            if (value.Kind == DateTimeKind.Local) value = value.ToUniversalTime();
            return "\"" + value.ToString("yyyy-MM-dd'T'HH:mm:ss.FFFFFFF", Invariant) + (value.Kind == DateTimeKind.Utc ? "Z\"" : "\"");
        }

        private static string Enumeration(Enum value, string path)
        {
            string name = value.ToString();
            bool isNumber = char.IsDigit(name[0]) || name[0] == '-';
            return isNumber ? name : Text(name, path);
        }

        // The JSON of what has no members, or null.
        private static string Scalar(object value, string path)
        {
            switch (value)
            {
                case null: case DBNull _: case NullString _: return "null";
                case string text: return Text(text, path);
                case bool flag: return flag ? "true" : "false";
                case char character: return Text(character.ToString(), path);
                case SwitchParameter given: return given.IsPresent ? "true" : "false";
                case Enum name: return Enumeration(name, path);
                case int _: case long _: case sbyte _: case byte _: case short _: case ushort _: case uint _: case ulong _:
                    return ((IFormattable)value).ToString(null, Invariant);
                case BigInteger integer: return Integer(integer);
                case decimal number: return Decimal(number);
                case double number: return Number(number, number.ToString("R", Invariant));
                case float number: return Number(number, number.ToString("R", Invariant));
                case SecureString _: return "{\"$secret\":\"SecureString\"}";
                case PSCredential credential: return "{\"$secret\":\"PSCredential\",\"username\":" + Text(credential.UserName, path) + "}";
                case ErrorRecord record:
                    return "{\"message\":" + Message(record.ToString()) + ",\"id\":" + Message(record.FullyQualifiedErrorId) +
                        ",\"category\":" + Message(record.CategoryInfo.Category.ToString()) + "}";
                case Exception error: return "{\"type\":" + Message(error.GetType().FullName) + ",\"message\":" + Message(error.Message) + "}";
            }
            return Time(value) ?? Named(value, path);
        }

        private static string Time(object value)
        {
            switch (value)
            {
                case DateTime date: return Date(date);
                case DateTimeOffset date: return "\"" + date.ToString("yyyy-MM-dd'T'HH:mm:ss.FFFFFFFzzz", Invariant) + "\"";
                case DateOnly date: return "\"" + date.ToString("yyyy-MM-dd", Invariant) + "\"";
                case TimeOnly time: return "\"" + time.ToString("HH:mm:ss.FFFFFFF", Invariant) + "\"";
                case TimeSpan span: return "\"" + span.ToString("c", Invariant) + "\"";
            }
            return null;
        }

        // What is a text to whoever writes it in a document.
        private static string Named(object value, string path)
        {
            switch (value)
            {
                case Guid _: case ScriptBlock _: case Version _: case SemanticVersion _: case IPAddress _: case MailAddress _: case CultureInfo _: case Regex _:
                    return Text(value.ToString(), path);
                case Uri uri: return Text(uri.OriginalString, path);
                case XmlDocument document: return Text(document.OuterXml, path);
                case Type type: return Text(type.FullName ?? "", path);
                case Encoding encoding: return Text(encoding.WebName, path);
                case FileSystemInfo file: return Text(file.FullName, path);
            }
            return null;
        }

        private string Node(object wrapped, string path)
        {
            if (ReferenceEquals(wrapped, System.Management.Automation.Internal.AutomationNull.Value)) return "null";
            PSObject outer = wrapped as PSObject;
            object value = outer == null ? wrapped : outer.BaseObject;
            string scalar = Scalar(value, path);
            if (scalar != null) return scalar;
            // All tables of members have one object within.
            bool isCustom = value is PSCustomObject;
            object itself = isCustom ? outer : value;
            if (above.Exists(each => ReferenceEquals(each, itself))) throw new FormatException(path + ": the value contains itself");
            if (above.Count >= MostLevels) throw new FormatException(path + ": more than " + MostLevels + " levels");
            above.Add(itself);
            string text;
            if (value is IDictionary) text = Table((IDictionary)value, path);
            else if (value is IEnumerable) text = List((IEnumerable)value, path);
            else text = Members(PSObject.AsPSObject(itself), isCustom, path);
            above.RemoveAt(above.Count - 1);
            return text;
        }

        private string Table(IDictionary table, string path)
        {
            List<string> parts = new List<string>();
            SortedDictionary<string, string> members = new SortedDictionary<string, string>(StringComparer.Ordinal);
            // Another table has no order of its own.
            bool isOrdered = table.GetType().Name.Contains("Ordered", StringComparison.OrdinalIgnoreCase);
            foreach (DictionaryEntry entry in table)
            {
                object key = entry.Key is PSObject ? ((PSObject)entry.Key).BaseObject : entry.Key;
                string name = key is IFormattable ? ((IFormattable)key).ToString(null, Invariant) : key.ToString();
                string member = Text(name, path) + ":" + Node(entry.Value, path + "." + name);
                if (!members.TryAdd(name, member)) throw new FormatException(path + ": two keys have the text '" + name + "'");
                if (isOrdered) parts.Add(member);
            }
            return "{" + string.Join(",", isOrdered ? (IEnumerable<string>)parts : members.Values) + "}";
        }

        private string List(IEnumerable list, string path)
        {
            List<string> parts = new List<string>();
            foreach (object item in list) parts.Add(Node(item, path + "[" + parts.Count + "]"));
            return "[" + string.Join(",", parts) + "]";
        }

        // The members with [DscProperty()]; null where a class has none and belongs to no resource.
        private static PropertyInfo[] Declared(Type type)
        {
            PropertyInfo[] found;
            if (DeclaredOf.TryGetValue(type, out found)) return found;
            PropertyInfo[] all = type.GetProperties(BindingFlags.Public | BindingFlags.Instance);
            found = Array.FindAll(all, each => each.IsDefined(typeof(DscPropertyAttribute), true));
            return DeclaredOf[type] = found.Length == 0 ? null : found;
        }

        // What a class or Select-Object declares; not what a type of .NET or a script computes, which may fail or take long.
        private string Members(PSObject value, bool isCustom, string path)
        {
            Type type = value.BaseObject.GetType();
            if (!isCustom && !type.Assembly.IsDynamic) throw new FormatException(path + ": no JSON form for " + LanguagePrimitives.ConvertTo<string>(type));
            List<string> parts = new List<string>();
            // Of a class with properties for resources these alone, hidden or not.
            PropertyInfo[] declared = isCustom ? null : Declared(type);
            if (declared != null) foreach (PropertyInfo own in declared) parts.Add(Member(own.Name, own.GetValue(value.BaseObject), path));
            else foreach (PSPropertyInfo member in value.Properties)
                if (member.MemberType == (isCustom ? PSMemberTypes.NoteProperty : PSMemberTypes.Property)) parts.Add(Member(member.Name, member.Value, path));
            return "{" + string.Join(",", parts) + "}";
        }

        private string Member(string name, object value, string path) { return Text(name, path) + ":" + Node(value, path + "." + name); }
    }
}
