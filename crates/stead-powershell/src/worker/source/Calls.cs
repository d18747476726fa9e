// The calls of a module, one after the other in one pipeline, and what each of them finds in its runspace.
using System;
using System.Collections;
using System.Collections.Generic;
using System.Globalization;
using System.Management.Automation;
using System.Reflection;
using System.Threading;

namespace SteadWorker
{
    /// <summary>One call, as the scripts see it that carry it out.</summary>
    public sealed class Call
    {
        internal readonly Asked About;
        internal bool Began, Came, AsksForRestart;
        /// <summary>Why it did not begin.</summary>
        internal ErrorRecord Unready;

        internal Call(Asked about, ScriptBlock body, object target, object[] values)
        {
            About = about;
            Body = body;
            Target = target;
            Values = values;
            At = -1;
        }

        public string Method { get { return About.Method; } }
        public string[] Names { get { return About.Names; } }
        public ScriptBlock Body { get; private set; }
        /// <summary>The class, or the module of a script.</summary>
        public object Target { get; private set; }
        public object[] Values { get; private set; }
        /// <summary>Which property was being assigned when the call failed; negative for none.</summary>
        public int At { get; set; }

        internal string Property { get { return At < 0 ? "" : About.Names[At]; } }
    }

    /// <summary>The global variables of a runspace. What calls change is put back; what they see first is what modules are written for.</summary>
    internal sealed class Globals
    {
        // Automatic, or set for each call.
        private static readonly string[] Own =
        {
            "$", "?", "^", "_", "args", "ConsoleFileName", "EnabledExperimentalFeatures", "Error", "ExecutionContext", "foreach", "HOME", "Host", "input",
            "LASTEXITCODE", "MyInvocation", "NestedPromptLevel", "PID", "PSBoundParameters", "PSCmdlet", "PSCommandPath", "PSItem", "PSScriptRoot",
            "ErrorActionPreference", "VerbosePreference", "DebugPreference", "InformationPreference", "WarningPreference", "ProgressPreference",
            "ConfirmPreference", "WhatIfPreference", "PWD", "sender", "ShellId", "StackTrace", "switch", "this", "true", "false", "null", "PSDefaultParameterValues", "DSCMachineStatus",
        };
        private static readonly object False = false;
        private const ScopedItemOptions Fixed = ScopedItemOptions.ReadOnly | ScopedItemOptions.Constant;
        private const string Listing = "Microsoft.PowerShell.Utility\\Get-Variable -Scope Global";
        private const string Removing = "param($name) Microsoft.PowerShell.Utility\\Remove-Variable ([WildcardPattern]::Escape($name)) -Scope Global -Force -ErrorAction Ignore";

        // What is not put back.
        private readonly HashSet<string> left = new HashSet<string>(Own, StringComparer.OrdinalIgnoreCase);
        private Dictionary<string, object> first;
        private CultureInfo culture, uiCulture;
        private Hashtable defaults;

        /// <summary>Makes the runspace what its first call found, with the preferences of this one.</summary>
        internal void Prepare(SessionState state, Asked about)
        {
            PSVariableIntrinsics variables = state.PSVariable;
            IList errors = variables.GetValue("global:Error") as IList;
            if (errors != null && errors.Count > 0) errors.Clear();
            Set(variables, "global:LASTEXITCODE", 0);
            Set(variables, "global:ErrorActionPreference", ActionPreference.Continue);
            Set(variables, "global:VerbosePreference", about.Verbose);
            Set(variables, "global:DebugPreference", about.Debug);
            Set(variables, "global:InformationPreference", about.Information);
            Set(variables, "global:WarningPreference", ActionPreference.Continue);
            Set(variables, "global:ProgressPreference", about.Progress);
            Set(variables, "global:ConfirmPreference", ConfirmImpact.None);
            Set(variables, "global:WhatIfPreference", False);
            Set(variables, "global:DSCMachineStatus", null);
            IDictionary given = variables.GetValue("global:PSDefaultParameterValues") as IDictionary;
            if (first == null) TakeFirst(state, given);
            else
            {
                CultureInfo.CurrentCulture = culture;
                CultureInfo.CurrentUICulture = uiCulture;
                if (given == null || given.Count > 0 || defaults.Count > 0) variables.Set("global:PSDefaultParameterValues", defaults.Clone());
                if (IsChanged(state)) Restore(state);
            }
            // A path is a pattern here.
            if (state.Path.CurrentLocation.Path != about.Directory) state.Path.SetLocation(WildcardPattern.Escape(about.Directory));
        }

        private static void Set(PSVariableIntrinsics variables, string name, object value)
        {
            PSVariable known = variables.Get(name);
            if (known == null || !Equals(known.Value, value)) variables.Set(name, value);
        }

        private void TakeFirst(SessionState state, IDictionary given)
        {
            culture = CultureInfo.CurrentCulture;
            uiCulture = CultureInfo.CurrentUICulture;
            defaults = given == null ? new Hashtable() : new Hashtable(given);
            Dictionary<string, object> found = new Dictionary<string, object>(StringComparer.OrdinalIgnoreCase);
            foreach (PSVariable each in All(state))
                if ((each.Options & Fixed) != 0) left.Add(each.Name); else if (!left.Contains(each.Name)) found[each.Name] = each.Value;
            first = found;
        }

        private bool IsChanged(SessionState state)
        {
            int count = 0;
            foreach (PSVariable each in All(state))
            {
                object value;
                if (left.Contains(each.Name)) continue;
                if (!first.TryGetValue(each.Name, out value) || !IsSame(each.Value, value)) return true;
                count++;
            }
            return count != first.Count;
        }

        private static bool IsSame(object value, object other)
        {
            return ReferenceEquals(value, other) || (value is ValueType || value is string) && value.Equals(other);
        }

        // One that a call made read-only is made anew, a constant one stays.
        private void Restore(SessionState state)
        {
            HashSet<string> found = new HashSet<string>(StringComparer.OrdinalIgnoreCase);
            foreach (PSVariable each in new List<PSVariable>(All(state)))
            {
                if (left.Contains(each.Name)) continue;
                object value;
                try
                {
                    if ((each.Options & Fixed) != 0) state.InvokeCommand.InvokeScript(true, ScriptBlock.Create(Removing), null, each.Name);
                    else if (!first.TryGetValue(each.Name, out value)) state.PSVariable.Remove("global:" + each.Name);
                    else
                    {
                        found.Add(each.Name);
                        if (!IsSame(each.Value, value)) each.Value = value;
                    }
                }
                catch (RuntimeException) { }
            }
            foreach (KeyValuePair<string, object> each in first)
            {
                if (found.Contains(each.Key)) continue;
                try { state.PSVariable.Set("global:" + each.Key, each.Value); } catch (RuntimeException) { }
            }
            // What could not be put back is not tried again for each call.
            foreach (PSVariable each in All(state))
            {
                object value;
                if (first.TryGetValue(each.Name, out value) && IsSame(each.Value, value) || !left.Add(each.Name)) continue;
                first.Remove(each.Name);
            }
        }

        /// <summary>The global variables. A runspace lists them by a command that takes as long as many a call, so that they are looked at where it
        /// has them; a version that has them elsewhere is asked by that command.</summary>
        internal static IEnumerable<PSVariable> All(SessionState state) { return Table(state) ?? Listed(state); }

        internal static IEnumerable<PSVariable> Table(SessionState state)
        {
            IDictionary<string, PSVariable> table = Member(Member(Member(state, "Internal"), "GlobalScope"), "Variables") as IDictionary<string, PSVariable>;
            return table == null ? null : table.Values;
        }

        internal static IEnumerable<PSVariable> Listed(SessionState state)
        {
            foreach (PSObject each in state.InvokeCommand.InvokeScript(true, ScriptBlock.Create(Listing), null)) yield return (PSVariable)each.BaseObject;
        }

        private static object Member(object of, string name)
        {
            PropertyInfo found = of == null ? null : of.GetType().GetProperty(name, BindingFlags.Instance | BindingFlags.NonPublic);
            return found == null ? null : found.GetValue(of);
        }
    }

    /// <summary>Who has the conversation: the thread of the worker, or the pipeline of a module, which answers and reads on by itself as long as
    /// it is asked for calls of its own. A thread that waits for another one takes as long to wake as many a call.</summary>
    public sealed class Turn : IDisposable
    {
        private readonly Worker worker;
        private readonly ModuleRunspace runspace;
        private readonly Globals globals;
        private readonly AutoResetEvent given = new AutoResetEvent(false);
        private readonly AutoResetEvent back = new AutoResetEvent(false);
        private SessionState state;
        private bool isUnderWay, isAnswered;
        private volatile bool isOver;

        internal Turn(Worker worker, ModuleRunspace runspace, Globals globals)
        {
            this.worker = worker;
            this.runspace = runspace;
            this.globals = globals;
        }

        public Call Call { get { return runspace.Call; } }

        internal void Give() { given.Set(); }

        internal void End()
        {
            isOver = true;
            given.Set();
        }

        internal bool IsBackWithin(int milliseconds) { return back.WaitOne(milliseconds); }

        /// <summary>Takes the state of the runspace whose pipeline this is.</summary>
        public void Enter(SessionState own) { state = own; }

        /// <summary>Waits for the next call, and makes all ready for it. False where none is left, and where the last one did not come to its
        /// end, as behind a "continue" outside of a loop.</summary>
        public bool MoveNext()
        {
            if (isUnderWay) return false;
            bool hasRead = isAnswered && worker.ReadOn(runspace);
            if (!hasRead)
            {
                if (isAnswered) back.Set();
                isAnswered = false;
                given.WaitOne();
                if (isOver) return false;
            }
            isUnderWay = true;
            globals.Prepare(state, Call.About);
            Call.Began = true;
            return true;
        }

        /// <summary>The call came to its end.</summary>
        public void Done()
        {
            Call.AsksForRestart = LanguagePrimitives.Equals(state.PSVariable.GetValue("global:DSCMachineStatus"), 1);
            Call.Came = true;
            isUnderWay = false;
            isAnswered = worker.Answer(runspace);
            if (!isAnswered) back.Set();
        }

        /// <summary>Returns whether an error is one of the call, which ends the pipeline; else it is why the call did not begin.</summary>
        public bool IsOfCall(ErrorRecord error)
        {
            if (Call == null || Call.Began) return true;
            Exception cause = error.Exception is MethodInvocationException ? error.Exception.InnerException : null;
            Call.Unready = cause == null ? error : Reports.RecordOf(cause);
            return false;
        }

        /// <summary>The pipeline ends, whatever ended it.</summary>
        public void Leave() { if (isUnderWay || isAnswered) back.Set(); }

        public void Dispose()
        {
            given.Dispose();
            back.Dispose();
        }
    }
}
