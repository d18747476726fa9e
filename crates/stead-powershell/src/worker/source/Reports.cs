// The lines that answer a request.
using System;
using System.Collections.Generic;
using System.IO;
using System.Management.Automation;
using System.Text;
using System.Text.RegularExpressions;

namespace SteadWorker
{
    /// <summary>What is sent of a call. Flushed together: whoever reads the lines has no use for each alone.</summary>
    internal sealed class Reports
    {
        private const int MostReported = 100;
        private const int MostInner = 16;

        /// <summary>What was reported while a module was loaded.</summary>
        internal readonly List<object> Loading = new List<object>();
        /// <summary>How far a request has come: "read", "load" or "call".</summary>
        internal string Step;
        private readonly StreamWriter writer;
        // The errors that the resource reported and went on from.
        private readonly List<ErrorRecord> reported = new List<ErrorRecord>();
        private int more;

        internal Reports(StreamWriter writer) { this.writer = writer; }

        internal bool HasReported { get { return reported.Count > 0; } }

        internal void Begin()
        {
            Loading.Clear();
            Step = "read";
            reported.Clear();
            more = 0;
        }

        internal void SendDone(Request request, bool ended, bool reboot)
        {
            writer.WriteLine("{\"id\":\"" + request.Id + "\",\"done\":{\"ended\":" + Flag(ended) + ",\"reboot\":" + Flag(reboot) + "}}");
        }

        private static string Flag(bool value) { return value ? "true" : "false"; }

        internal void SendLoaded(Request request)
        {
            foreach (object record in Loading) SendRecord(request, record);
            Loading.Clear();
        }

        private bool SendRecord(Request request, object record)
        {
            string stream, text;
            int of = 0;
            if (record is VerboseRecord) { stream = "verbose"; of = 2; text = ((VerboseRecord)record).Message; }
            else if (record is WarningRecord) { stream = "warning"; text = ((WarningRecord)record).Message; }
            else if (record is DebugRecord) { stream = "debug"; of = 3; text = ((DebugRecord)record).Message; }
            else if (record is InformationRecord) { stream = "information"; of = 1; text = TextOf(((InformationRecord)record).MessageData); }
            else if (record is ErrorRecord)
            {
                // What a program of the system writes to its standard error is text, not a failure.
                bool isText = IsNativeText((ErrorRecord)record);
                stream = isText ? "information" : "error";
                of = isText ? 1 : 0;
                text = record.ToString();
            }
            else return false;
            if (of <= request.Asked.Level) writer.WriteLine("{\"id\":\"" + request.Id + "\",\"stream\":\"" + stream + "\",\"message\":" + Json.Message(text) + "}");
            return true;
        }

        private static string TextOf(object value) { return LanguagePrimitives.ConvertTo<string>(value) ?? ""; }

        private static bool IsNativeText(ErrorRecord record)
        {
            return record.FullyQualifiedErrorId.StartsWith("NativeCommandError", StringComparison.OrdinalIgnoreCase);
        }

        // What a call put out so far. An error among the objects is one that the resource caught.
        internal void SendOutputs(ModuleRunspace runspace, Request request)
        {
            foreach (PSObject item in runspace.Output.ReadAll())
            {
                object value = item == null ? null : item.BaseObject;
                if (value is bool) writer.WriteLine("{\"id\":\"" + request.Id + "\",\"type\":\"System.Boolean\",\"output\":" + Flag((bool)value) + "}");
                else if (!SendRecord(request, value)) SendOutput(request, item, value);
            }
            if (runspace.Progress.Count > 0) SendProgress(request, runspace.Progress.ReadAll());
            if (runspace.Errors.Count == 0) return;
            // Errors that a command reported, and after which the resource went on.
            foreach (ErrorRecord record in runspace.Errors.ReadAll())
            {
                SendRecord(request, record);
                if (IsNativeText(record)) continue;
                if (reported.Count < MostReported) reported.Add(record); else more++;
            }
        }

        // Of those that come together and are about one activity, the last one says where it is.
        private void SendProgress(Request request, IList<ProgressRecord> records)
        {
            if (!request.Asked.IsProgressSent) return;
            for (int index = 0; index < records.Count; index++)
            {
                ProgressRecord record = records[index];
                ProgressRecord next = null;
                for (int later = index + 1; next == null && later < records.Count; later++)
                    if (records[later].ActivityId == record.ActivityId) next = records[later];
                if (next != null && next.RecordType == record.RecordType) continue;
                StringBuilder line = new StringBuilder("{\"id\":\"" + request.Id + "\",\"progress\":{\"activityId\":").Append(record.ActivityId);
                line.Append(",\"parentId\":").Append(record.ParentActivityId).Append(",\"activity\":").Append(Json.Message(record.Activity));
                line.Append(",\"status\":").Append(Json.Message(record.StatusDescription)).Append(",\"operation\":").Append(Json.Message(record.CurrentOperation ?? ""));
                line.Append(",\"percent\":").Append(record.PercentComplete).Append(",\"secondsLeft\":").Append(record.SecondsRemaining);
                line.Append(",\"isOver\":").Append(Flag(record.RecordType == ProgressRecordType.Completed)).Append("}}");
                writer.WriteLine(line.ToString());
            }
        }

        /// <summary>Answers a call that put out verdicts alone, or nothing, and reported nothing; false where there is more.</summary>
        internal bool SendVerdict(ModuleRunspace runspace, Request request)
        {
            if (HasReported || runspace.Errors.Count > 0 || runspace.Progress.Count > 0) return false;
            for (int index = 0; index < runspace.Output.Count; index++)
                if (runspace.Output[index] == null || !(runspace.Output[index].BaseObject is bool)) return false;
            SendOutputs(runspace, request);
            SendDone(request, true, runspace.AsksForRestart);
            return true;
        }

        private void SendOutput(Request request, PSObject item, object value)
        {
            string head = "{\"id\":\"" + request.Id + "\",\"type\":" + Json.Message(value == null ? "" : value.GetType().ToString());
            try { head += ",\"output\":" + Json.Of(item); }
            catch (Exception error) { head += ",\"refused\":" + Json.Message(error.GetBaseException().Message); }
            writer.WriteLine(head + "}");
        }

        private string JoinReported()
        {
            List<string> texts = reported.ConvertAll(record => record.ToString());
            if (more > 0) texts.Add("and " + more + " more");
            return string.Join("; ", texts);
        }

        /// <summary>A failure because of the errors that a change went on from.</summary>
        internal void SendReported(Request request, ModuleRunspace runspace)
        {
            string count = reported.Count > 1 ? (reported.Count + more) + " errors: " : "";
            SendFailure(request, runspace, reported[0], count + JoinReported());
        }

        /// <summary>The record of an error that was thrown.</summary>
        internal static ErrorRecord RecordOf(Exception error)
        {
            IContainsErrorRecord own = error as IContainsErrorRecord;
            if (own == null || own.ErrorRecord == null) return new ErrorRecord(error, error.Message, ErrorCategory.OperationStopped, null);
            // With the exception that it came with, where it has none of its own.
            return new ErrorRecord(own.ErrorRecord, error);
        }

        /// <summary>Where a module gave nothing, the last error that was reported says why.</summary>
        internal ErrorRecord OfLoad(ErrorRecord record)
        {
            ErrorRecord last = (ErrorRecord)Loading.FindLast(each => each is ErrorRecord);
            return Step == "load" && last != null && record.Exception is InvalidOperationException ? last : record;
        }

        // The record of an error that the resource raised: the innermost one that PowerShell did not make of another.
        private static ErrorRecord CauseOf(ErrorRecord record, out Exception exception)
        {
            exception = record.Exception;
            while (exception.InnerException != null && exception is MethodInvocationException) exception = exception.InnerException;
            // Its own record knows less than the one that it came with.
            if (ReferenceEquals(exception, record.Exception)) return record;
            IContainsErrorRecord own = exception as IContainsErrorRecord;
            return own == null ? record : own.ErrorRecord;
        }

        internal void SendFailure(Request request, ModuleRunspace runspace, ErrorRecord record, string text)
        {
            Exception exception = record.Exception;
            ErrorRecord cause = text == null ? CauseOf(record, out exception) : record;
            if (text == null)
            {
                text = cause.ToString();
                // What it went on from may be why it came to this.
                if (reported.Count > 0) text += "; before it: " + JoinReported();
            }
            // What 'throw' was given is in the record of the exception that PowerShell made for it.
            Exception own = cause.Exception;
            if (exception is RuntimeException && own != null && !(own is ParentContainsErrorRecordException)) exception = own;
            bool isCalled = runspace != null && Step == "call";
            StringBuilder line = new StringBuilder("{\"id\":\"" + request.Id + "\",\"error\":{\"id\":").Append(Json.Message(cause.FullyQualifiedErrorId));
            line.Append(",\"category\":").Append(Json.Message(cause.CategoryInfo.Category.ToString()));
            line.Append(",\"type\":").Append(Json.Message(exception.GetType().FullName));
            line.Append(",\"message\":").Append(Json.Message(text)).Append(",\"at\":").Append(Json.Message(PlaceOf(cause)));
            line.Append(",\"stack\":").Append(Json.Message(cause.ScriptStackTrace)).Append(",\"inner\":[").Append(Inner(exception));
            line.Append("],\"during\":\"").Append(Step);
            // A request for a restart counts though the method failed after it.
            line.Append("\",\"property\":").Append(Json.Message(isCalled && runspace.Call != null ? runspace.Call.Property : ""));
            line.Append(",\"reboot\":").Append(Flag(isCalled && runspace.AsksForRestart)).Append("}}");
            writer.WriteLine(line.ToString());
            writer.Flush();
        }

        // File and line of an error. Of one that a module throws while it is loaded, the stack alone has them.
        private static string PlaceOf(ErrorRecord record)
        {
            InvocationInfo called = record.InvocationInfo;
            if (called != null && !string.IsNullOrEmpty(called.ScriptName)) return called.ScriptName + ":" + called.ScriptLineNumber;
            Match found = Regex.Match(record.ScriptStackTrace ?? "", @", (?<file>/.+): line (?<line>\d+)");
            return found.Success ? found.Groups["file"].Value + ":" + found.Groups["line"].Value : "";
        }

        private static string Inner(Exception exception)
        {
            List<string> texts = new List<string>();
            while (exception.InnerException != null && texts.Count < MostInner)
            {
                exception = exception.InnerException;
                texts.Add("[" + Json.Message(exception.GetType().FullName) + "," + Json.Message(exception.Message) + "]");
            }
            return string.Join(",", texts);
        }
    }
}
