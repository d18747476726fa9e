// The runspaces of modules, and the state of the process that they share.
using System;
using System.Collections;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Management.Automation;
using System.Management.Automation.Runspaces;
using System.Reflection;
using System.Text;

namespace SteadWorker
{
    /// <summary>The scripts that run in the runspace of a module. They are given as text, so that they belong to it.</summary>
    internal sealed class Scripts
    {
        internal string Load, Script, Calls;
    }

    /// <summary>The variables of the environment, and all of them in one text: whether any changed is asked after each call.</summary>
    internal sealed class Variables
    {
        internal readonly IDictionary All;
        internal string Text;

        internal Variables() : this(Environment.GetEnvironmentVariables()) { }

        internal Variables(IDictionary all)
        {
            All = all;
            StringBuilder text = new StringBuilder();
            foreach (DictionaryEntry each in all) text.Append((string)each.Key).Append('\0').Append((string)each.Value).Append('\0');
            Text = text.ToString();
        }

        internal void Set(string name, string value)
        {
            All[name] = value;
            Text = "";
        }
    }

    /// <summary>The state of the process. What a call did to it is undone, so that the next one starts as if it were alone.</summary>
    internal sealed class ProcessState
    {
        internal readonly string ModulePath = Environment.GetEnvironmentVariable("PSModulePath");
        private readonly string folder = Environment.CurrentDirectory;
        private readonly Encoding outputEncoding = Console.OutputEncoding;
        private Variables now;

        /// <summary>The environment before any module was loaded.</summary>
        internal Variables AtStart { get; private set; }
        internal string Root { get; private set; }

        internal void TakeStart()
        {
            AtStart = now = new Variables();
            // For each new runspace PowerShell computes the path anew, with the directories of the user first.
            AtStart.Set("PSModulePath", ModulePath);
        }

        internal void Stand(string directory)
        {
            if (directory != folder) Environment.CurrentDirectory = directory;
        }

        internal void ChangeTo(Variables environment)
        {
            if (now != environment) Restore(environment);
        }

        internal void Restore(Variables environment)
        {
            if (Environment.CurrentDirectory != folder) Environment.CurrentDirectory = folder;
            if (!ReferenceEquals(Console.OutputEncoding, outputEncoding)) Console.OutputEncoding = outputEncoding;
            CultureInfo.DefaultThreadCurrentCulture = CultureInfo.DefaultThreadCurrentUICulture = null;
            Variables found = new Variables();
            now = environment;
            if (found.Text == environment.Text) return;
            foreach (object name in found.All.Keys) if (!environment.All.Contains(name)) Environment.SetEnvironmentVariable((string)name, null);
            foreach (DictionaryEntry each in environment.All)
                if ((string)found.All[each.Key] != (string)each.Value) Environment.SetEnvironmentVariable((string)each.Key, (string)each.Value);
            // They have no order of their own.
            environment.Text = new Variables().Text;
        }

        // Where the document is belongs to what each module finds: it changes with the document alone, and is put back by no call.
        internal void SetRoot(string root, IEnumerable<ModuleRunspace> runspaces)
        {
            const string name = "DSC_CONFIG_ROOT";
            Root = root;
            // A module that is being loaded may have set others.
            Environment.SetEnvironmentVariable(name, root);
            AtStart.Set(name, root);
            foreach (ModuleRunspace each in runspaces) each.Environment.Set(name, root);
        }

        /// <summary>The environment of a module that has just been loaded: what it set then is its own, also what it added to the path,
        /// without what PowerShell adds.</summary>
        internal Variables Own(string computed)
        {
            string path = Environment.GetEnvironmentVariable("PSModulePath") ?? "";
            if (path != ModulePath)
            {
                HashSet<string> added = new HashSet<string>(computed.Split(Path.PathSeparator));
                added.ExceptWith(ModulePath.Split(Path.PathSeparator));
                Environment.SetEnvironmentVariable("PSModulePath", string.Join(Path.PathSeparator, Array.FindAll(path.Split(Path.PathSeparator), each => !added.Contains(each))));
            }
            return now = new Variables();
        }
    }

    /// <summary>A module that is being loaded in a runspace.</summary>
    internal sealed class Load
    {
        internal readonly Runspace Runspace;
        /// <summary>The path of modules that PowerShell made for it.</summary>
        internal readonly string Computed;
        private readonly PowerShell shell;
        private readonly IAsyncResult running;

        internal Load(Runspace runspace, Scripts scripts, ProcessState process, string kind, string module, string resource)
        {
            Runspace = runspace;
            Computed = Environment.GetEnvironmentVariable("PSModulePath") ?? "";
            Environment.SetEnvironmentVariable("PSModulePath", process.ModulePath);
            shell = PowerShell.Create(runspace);
            shell.AddScript(scripts.Load, true).AddArgument(kind).AddArgument(module).AddArgument(resource);
            running = shell.BeginInvoke();
        }

        internal static Runspace NewRunspace()
        {
            Runspace runspace = RunspaceFactory.CreateRunspace(InitialSessionState.CreateDefault2());
            runspace.ThreadOptions = PSThreadOptions.ReuseThread;
            return runspace;
        }

        /// <summary>The class, or the module of a script; null where the resource is not there. What was reported meanwhile is added.</summary>
        internal object Complete(List<object> reported)
        {
            using (shell)
            {
                PSDataCollection<PSObject> found;
                try { found = shell.EndInvoke(running); }
                finally
                {
                    // An error of Import-Module ends its statement alone: the last one says why nothing came.
                    reported.AddRange(shell.Streams.Error.ReadAll());
                    reported.AddRange(shell.Streams.Warning.ReadAll());
                    reported.AddRange(shell.Streams.Information.ReadAll());
                }
                return found.Count == 0 ? null : found[found.Count - 1].BaseObject;
            }
        }
    }

    /// <summary>The runspace of a module and the pipeline in it that carries out its calls, which is kept from one to the next.</summary>
    internal sealed class ModuleRunspace
    {
        internal readonly Runspace Runspace;
        internal readonly string Key;
        internal Variables Environment;
        private readonly Scripts scripts;
        private readonly Dictionary<string, ScriptBlock> bodies = new Dictionary<string, ScriptBlock>();
        private readonly Globals globals = new Globals();
        private readonly Worker worker;
        private object target;
        private PowerShell shell;
        private Turn turn;
        private IAsyncResult running;

        internal PSDataCollection<PSObject> Output { get; private set; }
        internal PSDataCollection<ErrorRecord> Errors { get { return shell.Streams.Error; } }
        internal PSDataCollection<ProgressRecord> Progress { get { return shell.Streams.Progress; } }
        /// <summary>The call that is carried out, or the last one; null where there is none.</summary>
        internal Call Call { get; private set; }

        internal ModuleRunspace(Runspace runspace, Scripts scripts, Variables environment, string key, Worker worker)
        {
            Runspace = runspace;
            Key = key;
            this.worker = worker;
            Environment = environment;
            this.scripts = scripts;
        }

        internal void Loaded(object loaded, Variables environment)
        {
            target = loaded;
            Environment = environment;
        }

        // Where the method did not come to its end, its pipeline has ended. One that did not begin has asked for nothing.
        internal bool AsksForRestart
        {
            get
            {
                if (Call == null || !Call.Began) return false;
                if (running != null) return Call.AsksForRestart;
                try { return LanguagePrimitives.Equals(Runspace.SessionStateProxy.GetVariable("DSCMachineStatus"), 1); }
                catch (Exception) { return false; }
            }
        }

        /// <summary>Forgets the former call.</summary>
        internal void Reset() { Call = null; }

        internal void Begin(Asked about, object[] values)
        {
            Prepare(about, values);
            if (running == null) Start();
            turn.Give();
        }

        /// <summary>Returns whether the call that has the pipeline is over, or the pipeline has handed the conversation back.</summary>
        internal bool IsBackWithin(int milliseconds) { return turn.IsBackWithin(milliseconds); }

        internal void Prepare(Asked about, object[] values)
        {
            ScriptBlock body;
            if (!bodies.TryGetValue(about.Shape, out body))
                bodies[about.Shape] = body = ScriptBlock.Create(about.Kind == "class" ? ClassText((Type)target, about) : scripts.Script);
            Call = new Call(about, body, target, values);
        }

        private void Start()
        {
            turn = new Turn(worker, this, globals);
            Output = new PSDataCollection<PSObject>();
            shell = PowerShell.Create(Runspace);
            // In a scope of its own: what a resource sees of it are the preferences.
            shell.AddScript(scripts.Calls, true).AddArgument(turn);
            running = shell.BeginInvoke<PSObject, PSObject>(null, Output);
        }

        /// <summary>Ends the pipeline; throws the error it ended with, if any.</summary>
        internal void Stop()
        {
            if (running == null) return;
            turn.End();
            try { shell.EndInvoke(running); }
            finally
            {
                shell.Dispose();
                turn.Dispose();
                shell = null;
                running = null;
            }
        }

        // The text that makes an instance of a class with these properties and calls the method. Names that are written out are much
        // quicker than ones that are looked up for each call.
        private static string ClassText(Type type, Asked about)
        {
            StringBuilder text = new StringBuilder("param($type, $values, $call) try { $at = -1; $object = $type::new()");
            PropertyInfo[] all = type.GetProperties();
            for (int index = 0; index < about.Names.Length; index++)
            {
                string name = about.Names[index];
                PropertyInfo own = Array.Find(all, each => string.Equals(each.Name, name, StringComparison.OrdinalIgnoreCase));
                text.Append("\n$at = ").Append(index).Append("; ");
                if (own != null) text.Append("$object.'").Append(own.Name).Append("' = $values[$at]");
                else text.Append("throw [ArgumentException]::new(\"the resource has no property '$($call.Names[$at])'\")");
            }
            text.Append("\n$at = -1; ");
            if (about.Method != "Export") text.Append("$object.").Append(about.Method).Append("()");
            else if (about.Names.Length == 0 && type.GetMethod("Export", Type.EmptyTypes) != null) text.Append("$type::Export()");
            else if (type.GetMethod("Export", new[] { type }) != null) text.Append("$type::Export($object)");
            else
            {
                string given = about.Names.Length == 0 ? "without" : "with";
                text.Append("throw [NotSupportedException]::new(\"Export method ").Append(given).Append(" parameters not implemented by resource '$type'\")");
            }
            return text.Append(" } catch { $call.At = $at; throw }").ToString();
        }
    }
}
