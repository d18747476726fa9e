// JSON -> values. What the property type needs is decided before a value comes here: an object of one member says what is built.
using System;
using System.Collections;
using System.Collections.Specialized;
using System.Globalization;
using System.Management.Automation;
using System.Numerics;
using System.Security;
using System.Text.Json;

namespace SteadWorker
{
    internal static class Wire
    {
        private const int MostLevels = 512;

        /// <summary>The values of a request, of which not all are texts.</summary>
        internal static object[] Values(string text)
        {
            using (JsonDocument document = JsonDocument.Parse(text, new JsonDocumentOptions { MaxDepth = MostLevels })) return Items(document.RootElement);
        }

        private static object[] Items(JsonElement content)
        {
            object[] items = new object[content.GetArrayLength()];
            int index = 0;
            foreach (JsonElement item in content.EnumerateArray()) items[index++] = Value(item);
            return items;
        }

        private static object Value(JsonElement element)
        {
            switch (element.ValueKind)
            {
                case JsonValueKind.String: return element.GetString();
                case JsonValueKind.True: return true;
                case JsonValueKind.False: return false;
                case JsonValueKind.Null: return null;
                case JsonValueKind.Object: foreach (JsonProperty member in element.EnumerateObject()) return Build(member.Name, member.Value); break;
            }
            throw new FormatException("the request is not understood");
        }

        private static object Build(string tag, JsonElement content)
        {
            CultureInfo invariant = CultureInfo.InvariantCulture;
            switch (tag)
            {
                case "integer": return Integer(content.GetString());
                case "double": return double.Parse(content.GetString(), NumberStyles.Float, invariant);
                case "decimal": return decimal.Parse(content.GetString(), NumberStyles.Float, invariant);
                case "array": return Items(content);
                // As PowerShell makes them.
                case "hashtable": return Filled(new Hashtable(StringComparer.OrdinalIgnoreCase), content);
                case "ordered": return Filled(new OrderedDictionary(StringComparer.OrdinalIgnoreCase), content);
                case "object": return Custom(content);
                case "secureString": return Secure(content.GetString());
                case "credential":
                    IDictionary pair = Filled(new Hashtable(), content);
                    return new PSCredential((string)pair["username"], Secure((string)pair["password"]));
                // Only Windows has it: a command that is not there would be looked for in whatever modules there are.
                case "cimInstance":
                    string name = (string)Filled(new Hashtable(), content)["class"];
                    throw new NotSupportedException("a value of the class '" + name + "' needs the cmdlet New-CimInstance, which is not on this system");
            }
            throw new FormatException("the request is not understood: '" + tag + "'");
        }

        private static IDictionary Filled(IDictionary table, JsonElement members)
        {
            foreach (JsonProperty member in members.EnumerateObject()) table.Add(member.Name, Value(member.Value));
            return table;
        }

        private static PSObject Custom(JsonElement content)
        {
            PSObject made = new PSObject();
            foreach (JsonProperty member in content.EnumerateObject()) made.Properties.Add(new PSNoteProperty(member.Name, Value(member.Value)));
            return made;
        }

        private static object Integer(string digits)
        {
            BigInteger big = BigInteger.Parse(digits, CultureInfo.InvariantCulture);
            if (big >= int.MinValue && big <= int.MaxValue) return (int)big;
            if (big >= long.MinValue && big <= long.MaxValue) return (long)big;
            if (big >= 0 && big <= ulong.MaxValue) return (ulong)big;
            if (big >= (BigInteger)decimal.MinValue && big <= (BigInteger)decimal.MaxValue) return (decimal)big;
            return big;
        }

        // Character by character: ConvertTo-SecureString refuses an empty text.
        private static SecureString Secure(string text)
        {
            SecureString secure = new SecureString();
            foreach (char character in text) secure.AppendChar(character);
            return secure;
        }
    }
}
