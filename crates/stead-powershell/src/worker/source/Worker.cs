// A warm worker: reads one request a line and answers with lines, until the socket is closed. One call at a time; whoever started it
// ends it when a call takes too long. Standard output and error are not part of the protocol.
//
// First     class|/x/Demo.psd1|Demo|script|script|script
//                                   what the first request asks for, whose module is loaded meanwhile, and three scripts of PowerShell
// Request   7<tab>class|/x/Demo.psd1|Demo|Set|verbose|/home/you|/home/you|texts|Name<tab>n
//                                   a random number, what is asked for, the values. U+0001 stands where a | is here, and what is below a
//                                   space, and \, is written as a regular expression has it. What is asked for: the kind, the module, the
//                                   resource, the method, what is sent of its records ("none": warnings and errors alone; ",progress"
//                                   behind it: also how far it is), where it stands, where the document is, the form of the values ("json" where any is not a text), the properties
// Answers   {"id":"7","stream":"verbose","message":".."}                        any number, as they happen
//           {"id":"7","progress":{"activity":"..","percent":50, ..}}            the last one of an activity, where many come at once
//           {"id":"7","type":"System.Boolean","output":true}                    what the method returned or leaked
//           {"id":"7","type":"System.IntPtr","refused":"$: no JSON form .."}
//           {"id":"7","done":{"ended":true,"reboot":false}}                     "ended": the script came to its end
//        or {"id":"7","error":{"id":"..","message":"..","reboot":false, ..}}
using System;
using System.Collections.Generic;
using System.IO;
using System.Management.Automation;
using System.Management.Automation.Runspaces;
using System.Net.Sockets;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading;

namespace SteadWorker
{
    /// <summary>What a request asks for, as it is said of many, and what is known of it.</summary>
    internal sealed class Asked
    {
        // How much of the streams is sent: each level has those before it.
        private static readonly string[] Levels = { "none", "information", "verbose", "debug" };

        internal readonly string Kind, Module, Resource, Method, Directory, Root, Key, Shape;
        internal readonly string[] Names;
        internal readonly bool IsTexts, IsProgressSent;
        internal readonly int Level;
        internal readonly ActionPreference Information, Verbose, Debug, Progress;

        internal Asked(string[] texts)
        {
            Kind = texts[0];
            Module = texts[1];
            Resource = texts[2];
            Method = texts[3];
            string[] records = texts[4].Split(',');
            Level = Array.IndexOf(Levels, records[0]);
            IsProgressSent = records.Length > 1;
            Directory = texts[5];
            Root = texts[6];
            IsTexts = texts[7] == "texts";
            Names = new string[texts.Length - 8];
            Array.Copy(texts, 8, Names, 0, Names.Length);
            Key = KeyOf(Kind, Module, Resource);
            Shape = string.Join("\0", texts, 8, Names.Length) + "\0" + Method;
            Information = Preference(Level >= 1);
            Verbose = Preference(Level >= 2);
            Debug = Preference(Level >= 3);
            Progress = Preference(IsProgressSent);
        }

        internal static string KeyOf(string kind, string module, string resource) { return kind + "|" + module + "|" + resource; }

        private static ActionPreference Preference(bool isSent) { return isSent ? ActionPreference.Continue : ActionPreference.SilentlyContinue; }
    }

    internal sealed class Request
    {
        internal string Id;
        internal Asked Asked;
        internal object[] Values;
        internal bool IsAgain;
    }

    /// <summary>The conversation. One thread has it at a time: that of the worker, or the pipeline of the module that carries out a call.</summary>
    public sealed class Worker
    {
        private readonly Socket socket;
        private readonly StreamReader reader;
        private readonly StreamWriter writer;
        private readonly ProcessState process;
        private readonly Reports reports;
        private readonly Scripts scripts = new Scripts();
        private readonly Dictionary<string, ModuleRunspace> runspaces = new Dictionary<string, ModuleRunspace>();
        // Folders and modules may differ in case alone.
        private readonly Dictionary<string, Asked> asked = new Dictionary<string, Asked>();
        private readonly Dictionary<string, Load> begun = new Dictionary<string, Load>();
        // What is sent meanwhile of a call that takes a while is not sent between the parts of its answer.
        private readonly object sending = new object();
        // The request that is being carried out; null between two of them.
        private Request current;
        // A line that a pipeline has read and that is not for it.
        private string unread;
        // Nothing was asked for in the moment that a pipeline waited.
        private bool isQuiet;

        /// <summary>Speaks with whoever started this process, until that one is gone.</summary>
        public static void Run(string version, string edition, string home)
        {
            new Worker(version, edition, home).Loop();
            // Threads of a resource would keep the process.
            Environment.Exit(0);
        }

        private Worker(string version, string edition, string home)
        {
            string endpoint = Taken("STEAD_POWERSHELL_ENDPOINT");
            string modulePath = ModulePath(Taken("STEAD_POWERSHELL_MODULES"), home);
            if (modulePath != null) Environment.SetEnvironmentVariable("PSModulePath", modulePath);
            // Where only trusted settings count, PowerShell has read them: programs that a resource starts read theirs where they always are.
            string settings = Taken("STEAD_POWERSHELL_CONFIGURATION");
            if (settings != null) Environment.SetEnvironmentVariable("XDG_CONFIG_HOME", settings.Length > 1 ? settings.Substring(1) : null);
            socket = new Socket(AddressFamily.Unix, SocketType.Stream, ProtocolType.Unspecified);
            socket.Connect(new UnixDomainSocketEndPoint(endpoint));
            NetworkStream channel = new NetworkStream(socket, true);
            reader = new StreamReader(channel);
            writer = new StreamWriter(channel, new UTF8Encoding(false));
            string escaped = home.Replace("\\", "\\\\").Replace("\"", "\\\"");
            Send("{\"id\":\"0\",\"hello\":{\"protocol\":1,\"version\":\"" + version + "\",\"edition\":\"" + edition + "\",\"home\":\"" + escaped + "\"}}");
            // Whoever started this looks at that; meanwhile the runspace of the first module is opened.
            process = new ProcessState();
            reports = new Reports(writer);
            Runspace first = Load.NewRunspace();
            first.OpenAsync();
            string line = reader.ReadLine();
            if (line == null) Environment.Exit(0);
            BeginFirst(first, Texts(line));
        }

        private void BeginFirst(Runspace first, string[] texts)
        {
            scripts.Load = texts[3];
            scripts.Script = texts[4];
            scripts.Calls = texts[5];
            while (first.RunspaceStateInfo.State == RunspaceState.Opening) Thread.Sleep(1);
            process.TakeStart();
            if (first.RunspaceStateInfo.State == RunspaceState.Opened)
                begun[Asked.KeyOf(texts[0], texts[1], texts[2])] = new Load(first, scripts, process, texts[0], texts[1], texts[2]);
            else Environment.SetEnvironmentVariable("PSModulePath", process.ModulePath);
        }

        /// <summary>The value of a variable, which is gone afterwards.</summary>
        private static string Taken(string name)
        {
            string value = Environment.GetEnvironmentVariable(name);
            Environment.SetEnvironmentVariable(name, null);
            return value;
        }

        // PowerShell has added the directories of the user and of all users to the path: here are those that may be used. Its own are
        // where it puts them itself, behind those two, unless somebody says otherwise: behind a thousand modules each command of its own
        // would have all of them read.
        private static string ModulePath(string stated, string home)
        {
            if (string.IsNullOrEmpty(stated)) return null;
            string[] folders = stated.Split(':', StringSplitOptions.RemoveEmptyEntries);
            string own = Path.Combine(home, "Modules");
            if (Array.IndexOf(folders, own) >= 0) return string.Join(':', folders);
            StringBuilder usual = new StringBuilder(), others = new StringBuilder();
            foreach (string folder in folders)
            {
                bool isUsual = folder.EndsWith("/.local/share/powershell/Modules", StringComparison.Ordinal) || folder == "/usr/local/share/powershell/Modules";
                if (isUsual) usual.Append(folder).Append(':'); else others.Append(':').Append(folder);
            }
            return usual.Append(own).Append(others).ToString();
        }

        private void Send(string line)
        {
            writer.WriteLine(line);
            writer.Flush();
        }

        private void Loop()
        {
            string line = reader.ReadLine();
            while (line != null)
            {
                Step(line);
                // What waits for a runspace that does nothing, as an action of an event does, has its turn.
                if (unread == null && (isQuiet || !IsAsked())) foreach (ModuleRunspace each in runspaces.Values) End(each);
                line = unread ?? reader.ReadLine();
                unread = null;
                isQuiet = false;
            }
        }

        // Returns whether something is asked for, now or in a moment.
        private bool IsAsked() { return socket.Poll(50000, SelectMode.SelectRead); }

        /// <summary>Answers the call of a pipeline on its own thread. False where the answer has more than a verdict, which the thread of the worker
        /// makes: what an object has can depend on the runspace of the thread that looks at it.</summary>
        internal bool Answer(ModuleRunspace runspace)
        {
            try
            {
                lock (sending)
                {
                    // A failure of the worker's own may have answered it.
                    if (current == null || !reports.SendVerdict(runspace, current)) return false;
                    current = null;
                    writer.Flush();
                }
                process.Restore(runspace.Environment);
                return true;
            }
            // The call is answered, or whoever asked is gone: for another one this process is of no use.
            catch (Exception) { Environment.Exit(4); return false; }
        }

        /// <summary>Reads the next call, and returns whether it is one of this pipeline that nothing stands against; else the worker goes on with it.</summary>
        internal bool ReadOn(ModuleRunspace runspace)
        {
            isQuiet = !IsAsked();
            if (isQuiet) return false;
            unread = reader.ReadLine();
            if (unread == null) return false;
            try
            {
                string[] parts = unread.Split('\t');
                Asked about;
                if (!asked.TryGetValue(parts[1], out about) || about.Key != runspace.Key || about.Root != process.Root) return false;
                object[] values = ValuesOf(about, parts[2]);
                process.Stand(about.Directory);
                runspace.Prepare(about, values);
                lock (sending)
                {
                    reports.Begin();
                    reports.Step = "call";
                    current = new Request { Id = parts[0], Asked = about, Values = values };
                }
                unread = null;
                return true;
            }
            catch (Exception) { return false; }
        }

        /// <summary>Carries out a request and answers it.</summary>
        private void Step(string line)
        {
            string[] parts = line.Split('\t');
            Request request = current = new Request { Id = parts[0] };
            try
            {
                reports.Begin();
                request.Asked = AskedBy(parts[1]);
                request.Values = ValuesOf(request.Asked, parts[2]);
                Invoke(request);
            }
            catch (Exception error)
            {
                // The pipeline may have answered that one, and others behind it, and all of them: each has one answer.
                lock (sending)
                {
                    Request unanswered = current;
                    current = null;
                    if (unanswered != null)
                    {
                        request = unanswered;
                        reports.SendFailure(request, Runspace(request), reports.OfLoad(Reports.RecordOf(error)), null);
                    }
                }
                // A module that failed in the middle starts anew. Its pipeline may have read one more call: that fails with it.
                Close(request);
                lock (sending) if (current != null) reports.SendFailure(current, null, Reports.RecordOf(error), null);
            }
            current = null;
            // The call is answered; for another one this process is of no use.
            ModuleRunspace used = Runspace(request);
            try { process.Restore(used == null ? process.AtStart : used.Environment); }
            catch (Exception) { Environment.Exit(4); }
        }

        private static object[] ValuesOf(Asked about, string text) { return about.IsTexts ? Texts(text) : Wire.Values(text); }

        private Asked AskedBy(string text)
        {
            Asked known;
            if (!asked.TryGetValue(text, out known)) asked[text] = known = new Asked(Texts(text));
            return known;
        }

        private static string[] Texts(string line)
        {
            string[] texts = line.Split('\x01');
            if (line.Contains('\\')) for (int index = 0; index < texts.Length; index++) texts[index] = Regex.Unescape(texts[index]);
            return texts;
        }

        private ModuleRunspace Runspace(Request request)
        {
            ModuleRunspace found = null;
            if (request.Asked != null) runspaces.TryGetValue(request.Asked.Key, out found);
            return found;
        }

        private void Invoke(Request request)
        {
            Asked about = request.Asked;
            reports.Step = "load";
            if (about.Root != process.Root) process.SetRoot(about.Root, runspaces.Values);
            ModuleRunspace runspace = Opened(request);
            reports.Step = "call";
            runspace.Reset();
            process.Stand(about.Directory);
            runspace.Begin(about, request.Values);
            while (!runspace.IsBackWithin(20)) Look(runspace);
            request = current;
            if (request == null) return;
            about = request.Asked;
            reports.SendOutputs(runspace, request);
            if (!runspace.Call.Came) Left(request, runspace);
            // A change that went on after errors came to its end, and is not made.
            else if (reports.HasReported && (about.Method == "Set" || about.Method == "Delete")) reports.SendReported(request, runspace);
            else reports.SendDone(request, true, runspace.AsksForRestart);
            writer.Flush();
        }

        // Looks at a call that takes a while.
        private void Look(ModuleRunspace runspace)
        {
            lock (sending)
            {
                if (current == null) return;
                // What it puts out is sent meanwhile.
                reports.SendOutputs(runspace, current);
                writer.Flush();
                // Whoever asked is gone.
                if (socket.Poll(0, SelectMode.SelectRead) && socket.Available == 0) Environment.Exit(3);
            }
        }

        /// <summary>The runspace of a module, in the environment that it has made for itself.</summary>
        private ModuleRunspace Opened(Request request)
        {
            ModuleRunspace runspace = Runspace(request);
            if (runspace != null)
            {
                process.ChangeTo(runspace.Environment);
                return runspace;
            }
            process.ChangeTo(process.AtStart);
            Asked about = request.Asked;
            Load load;
            if (!begun.Remove(about.Key, out load))
            {
                Runspace own = Load.NewRunspace();
                own.Open();
                load = new Load(own, scripts, process, about.Kind, about.Module, about.Resource);
            }
            runspaces[about.Key] = runspace = new ModuleRunspace(load.Runspace, scripts, process.AtStart, about.Key, this);
            // What a module reports when it is loaded is shown, and fails nothing.
            object target = load.Complete(reports.Loading);
            if (target == null) throw new InvalidOperationException("the module has no resource '" + about.Resource + "'");
            runspace.Loaded(target, process.Own(load.Computed));
            reports.SendLoaded(request);
            return runspace;
        }

        // A call that did not come to its end.
        private void Left(Request request, ModuleRunspace runspace)
        {
            runspace.Stop();
            // An earlier call may have left what no later one can put back: a new runspace has nothing of it.
            if (!runspace.Call.Began)
            {
                Close(request);
                if (request.IsAgain) throw new RuntimeException(runspace.Call.Unready.ToString(), null, runspace.Call.Unready);
                request.IsAgain = true;
                Invoke(request);
                return;
            }
            reports.SendDone(request, false, runspace.AsksForRestart);
        }

        // Ends a pipeline whose calls are answered: what it fails with then is of none of them.
        private static void End(ModuleRunspace runspace)
        {
            try { runspace.Stop(); }
            catch (Exception) { }
        }

        private void Close(Request request)
        {
            ModuleRunspace runspace = Runspace(request);
            if (runspace == null) return;
            End(runspace);
            runspace.Runspace.Dispose();
            runspaces.Remove(request.Asked.Key);
        }
    }
}
