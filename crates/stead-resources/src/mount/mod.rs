//! `Stead/Mount`: a file system in fstab(5), and mounted.

use std::sync::Arc;

use stead_core::call::{Execution, Exported, Failure, Presumed};
use stead_core::claims::{Claims, Extent, Provision, Ties};
use stead_core::destruction::{Effect, Effects, Item, ItemKind};
use stead_core::statements::Statement;
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Cost, Lint, Linter, Plain, Provider, SetReply, State, TestReply, TraceLevel};
use stead_system::fs::{Place, SystemPath};

use crate::declared::Declared as _;
use crate::edit::{self, Edit, FileLocks, Files, Missing, Outcome, Text, removed_lines};
use crate::input::{blocked, invalid, read, read_each, required};
use crate::text::{MountOptions, MountPoint, MountText, words};
use crate::{ALL, BuiltIn, pending, reply, service};

mod lints;
mod live;
mod options;
mod point;
mod source;
mod table;

use live::{Action, Mounted};
use options::{DEFAULTS, Options};
use table::{Entry, NO_PATH, without_slash};

/// A file system: its entry in /etc/fstab, and whether it is mounted. Comments and the order of entries stay as they are. It
/// is mounted, unmounted and mounted again with other options before the entry is changed, so that an entry that the kernel
/// refuses is not written. Below a root other than that of the running system there is only the entry.
///
/// Bind mounts and file systems without a device, such as tmpfs, are mounted by the kernel directly; all others by `mount`,
/// with its helpers for networks, and swap space by `swapon`. A mount point that leads through a link which another user
/// than root may have placed is refused.
#[resource(
    "Stead/Mount",
    about = "A file system or swap space in /etc/fstab, and mounted.",
    tags("mount", "fstab", "filesystem", "linux"),
    undo = State,
    apart,
    capabilities = ALL,
)]
struct Properties<'a> {
    /// The mount point, an absolute path, or 'none' for swap space. To be mounted, the directory must exist.
    #[property(key, place)]
    path: MountPoint<'a>,
    /// What is mounted: a path, 'UUID=' or 'LABEL=' with a value, or what the type of file system takes. Required unless
    /// '_exist' is false; for swap space always.
    #[property(tells(path = "none"))]
    device: Option<MountText<'a>>,
    /// The type of file system, such as ext4, tmpfs or nfs; 'none' for a bind mount. Required unless '_exist' is false.
    fstype: Option<MountText<'a>>,
    /// The options, with commas between them. Compared by what they mean: their order, and those that hold without being
    /// stated, make no difference. A bind mount keeps the flags of what it shows, such as nosuid and ro; those that are
    /// stated are set, and 'suid', 'dev', 'exec' and 'rw' take theirs away. A new entry without options has 'defaults'.
    #[property(credentials)]
    options: Option<MountOptions<'a>>,
    /// Whether dump(8) backs it up: 0 in a new entry.
    #[schemars(range(max = 9))]
    dump: Option<u8>,
    /// When fsck(8) checks it at boot: 0 for never, which a new entry has.
    #[schemars(range(max = 9))]
    pass: Option<u8>,
    /// Whether it is mounted, with the options of its entry if it has any. Not compared if not stated, or below another root.
    state: Option<Activity>,
    /// Whether the entry exists. If false, it is also unmounted; the files of a tmpfs are lost then, and the plan lists
    /// them. Mount points that the system needs, such as / and /proc, are not unmounted.
    exist: bool,
}

words! {
    /// Whether a file system is mounted.
    enum Activity {
        /// It is.
        Mounted = "mounted",
        /// It is not.
        Unmounted = "unmounted",
    }
}

impl Activity {
    fn of(mounted: Option<&Mounted>) -> Self {
        if mounted.is_some() { Self::Mounted } else { Self::Unmounted }
    }
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {
    fn check(&self) -> Result<(), Failure> {
        let is_swap = self.path.0 == NO_PATH;
        let needed = [(Properties::DEVICE, self.device.is_none()), (Properties::FSTYPE, self.fstype.is_none())];
        let missing = needed
            .into_iter()
            .find(|(name, missing)| *missing && (self.exist || is_swap && *name == Properties::DEVICE));
        if let Some((name, _)) = missing {
            return Err(required(&[name]));
        }
        let numbers = [(Properties::DUMP, self.dump), (Properties::PASS, self.pass)];
        if let Some((name, _)) = numbers.into_iter().find(|(_, number)| number.is_some_and(|number| number > 9)) {
            return Err(invalid(name, format!("'{name}' must be between 0 and 9")));
        }
        let is_bare_uuid = |device: MountText<'_>| {
            lints::is_uuid(device.0) && self.fstype.is_some_and(|it| lints::is_on_a_device(it.0))
        };
        if self.device.is_some_and(is_bare_uuid) {
            return Err(invalid(Properties::DEVICE, "'device' is a UUID without 'UUID=' in front"));
        }
        match self.fstype {
            Some(fstype) if fstype.0 == "swap" && !is_swap => {
                Err(invalid(Properties::PATH, "'path' must be \"none\" for swap space"))
            }
            Some(fstype) if is_swap && fstype.0 != "swap" => {
                Err(invalid(Properties::PATH, "'path' must be the directory that it is mounted at"))
            }
            _ => Ok(()),
        }
    }
}

const TABLE: &str = "/etc/fstab";

/// `Stead/Mount` as it is registered.
pub(crate) fn built_in(locks: &FileLocks) -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Mounts { files: Files::new(locks) }))
}

/// Carries out `Stead/Mount`.
struct Mounts {
    files: Files<String>,
}

/// The packages of which one brings what mounts a file system that the kernel alone cannot.
fn helpers(fstype: &str) -> &'static [&'static str] {
    match fstype {
        "nfs" | "nfs4" => &["nfs-common", "nfs-utils"],
        "cifs" | "smb3" => &["cifs-utils"],
        "fuse.sshfs" => &["sshfs", "fuse-sshfs"],
        "glusterfs" => &["glusterfs-client", "glusterfs-fuse"],
        "ceph" => &["ceph-common"],
        "davfs" => &["davfs2"],
        "ntfs-3g" => &["ntfs-3g"],
        _ => &[],
    }
}

impl Provider for Mounts {
    fn linter(&self) -> Option<&dyn Linter> {
        const LINTER: fn(&Object) -> Vec<Lint> = lints::lints;
        Some(&LINTER)
    }

    fn has_state_elsewhere(&self, cx: &Context, input: &Plain) -> bool {
        cx.manages_running_system() && input.expose().get(Properties::STATE).is_some()
    }

    fn validate(&self, _cx: &Context, input: &Plain) -> Result<(), Failure> {
        read::<Properties<'_>>(input).map(|_| ())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let stated: Properties<'_> = read_each(input)?;
        Ok(Plain::new(stated.state(&self.find(cx, &stated)?)))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired: Properties<'_> = read(input)?;
        let found = self.find(cx, &desired)?;
        let change = desired.change(cx, &found)?;
        let set = SetReply { effects: change.effects, ..reply::set(desired.after(cx), &change.differing, Vec::new()) };
        let mut actual = desired.state(&found);
        actual.retain(|name, _| !desired.exist || desired.states(name));
        Ok(reply::tested_as(actual, &change.differing, set))
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired: Properties<'_> = read(input)?;
        let Change { differing, effects, what_if, presumed, .. } = self.bring_about(cx, &desired, execution)?;
        Ok(SetReply { presumed, effects, ..reply::set(desired.after(cx), &differing, what_if) })
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        let desired = Properties { exist: false, ..read_each(input)? };
        Ok(self.bring_about(cx, &desired, execution)?.what_if)
    }

    fn export(&self, cx: &Context, _filter: &Plain) -> Result<Vec<Exported>, Failure> {
        let Some(text) = self.files.look(cx, &table_path(cx))? else { return Ok(Vec::new()) };
        let entries = table::all(&text.content);
        let is_first = |(at, entry): &(usize, &Entry)| {
            !entries.iter().take(*at).any(|earlier| earlier.is_at(&entry.path, Some(&entry.device)))
        };
        let exported = |(_, entry): (usize, &Entry)| exported(cx, entry);
        Ok(entries.iter().enumerate().filter(is_first).map(exported).collect())
    }

    fn cost(&self, _desired: &Value) -> Cost {
        Cost::Process
    }

    fn states(&self, _cx: &Context, input: &Plain) -> Vec<Statement> {
        let text = |name| reply::text(input, name).unwrap_or_default();
        let thing = match text(Properties::PATH) {
            NO_PATH => format!("the swap space '{}'", text(Properties::DEVICE)),
            path => format!("the mount point '{path}'"),
        };
        reply::states(
            &thing,
            input,
            &[
                Properties::DEVICE,
                Properties::FSTYPE,
                Properties::OPTIONS,
                Properties::DUMP,
                Properties::PASS,
                Properties::STATE,
            ],
        )
    }

    fn ties(&self, input: &Plain) -> Ties {
        if reply::is_removal(input) {
            return Ties::default();
        }
        let paths =
            [Properties::PATH, Properties::DEVICE].into_iter().filter_map(|name| input.expose().get(name)?.as_str());
        let uses = paths.filter_map(|path| Some(Provision::Path(source::path(path)?.into()))).collect();
        let helpers = reply::text(input, Properties::FSTYPE).map(helpers).unwrap_or_default();
        Ties { provides: Vec::new(), uses }.and_packages(helpers.iter().copied())
    }

    fn claims(&self, input: &Plain) -> Option<Claims> {
        // What is mounted hides what is below.
        let is_entry_alone = input.expose().get(Properties::STATE).is_none() && !reply::is_removal(input);
        let text = |name| reply::text(input, name);
        let key = match text(Properties::PATH)? {
            NO_PATH => text(Properties::DEVICE),
            path => Some(without_slash(path)),
        };
        is_entry_alone.then(|| Claims::path(TABLE, Extent::Part { line: None, key: key.map(str::to_owned) }))
    }
}

fn table_path(cx: &Context) -> SystemPath {
    cx.resolve(TABLE)
}

/// An entry as an instance that is in state.
fn exported(cx: &Context, entry: &Entry) -> Exported {
    let mut properties = stated(entry);
    properties.insert(Properties::PATH.to_owned(), Value::from(entry.path.as_str()));
    let mounted = cx.manages_running_system().then(|| live::find(&entry.path, Some(&entry.device)));
    match mounted.transpose() {
        Ok(Some(mounted)) if mounted.as_ref().is_none_or(|mounted| mounted.differing(entry).is_empty()) => {
            properties.insert(Properties::STATE.to_owned(), Value::from(Activity::of(mounted.as_ref()).word()));
        }
        Ok(_) => {}
        // The entry counts whether it leads anywhere or not.
        Err(failure) => cx.say(TraceLevel::Warn, &failure.message),
    }
    Exported::named(if entry.path == NO_PATH { &entry.device } else { &entry.path }, properties)
}

/// The properties that an entry has besides its path.
fn stated(entry: &Entry) -> Object {
    let values = [
        (Properties::DEVICE, Value::from(entry.device.as_str())),
        (Properties::FSTYPE, Value::from(entry.fstype.as_str())),
        (Properties::OPTIONS, Value::from(entry.options.as_str())),
        (Properties::DUMP, Value::from(u64::from(entry.dump))),
        (Properties::PASS, Value::from(u64::from(entry.pass))),
    ];
    values.map(|(name, value)| (name.to_owned(), value)).into()
}

/// What there is of a file system.
struct Found {
    text: Option<Arc<Text<String>>>,
    entry: Option<Entry>,
    /// Whether the running system is what is managed.
    is_live: bool,
    /// What is mounted there.
    mounted: Option<Mounted>,
}

impl Found {
    fn exists(&self) -> bool {
        self.entry.is_some() || self.mounted.is_some()
    }
}

impl Found {
    /// Mounts again what was unmounted in vain, if the table says what it was. Returns why it was in vain.
    fn restored(&self, cx: &Context, failure: Failure) -> Failure {
        let was = self.mounted.as_ref().zip(self.entry.as_ref()).filter(|(was, entry)| was.differing(entry).is_empty());
        let is_gone = |entry: &Entry| live::find(&entry.path, Some(&entry.device)).is_ok_and(|found| found.is_none());
        let restored = was.filter(|(_, entry)| is_gone(entry)).map(|(_, entry)| live::act(cx, Action::Mount, entry));
        match restored {
            Some(Err(second)) => {
                let message = format!("{}; what was mounted is not mounted again: {}", failure.message, second.message);
                Failure { message, ..failure }
            }
            _ => failure,
        }
    }
}

/// What becomes of a file system.
#[derive(Default)]
struct Change {
    differing: Vec<&'static str>,
    actions: Vec<Action>,
    /// The table afterwards; `None` where it stays as it is.
    edited: Option<String>,
    what_if: Vec<String>,
    effects: Effects,
    presumed: Option<Presumed>,
}

impl Mounts {
    fn find(&self, cx: &Context, stated: &Properties<'_>) -> Result<Found, Failure> {
        let text = self.files.look(cx, &table_path(cx))?;
        let entry = text.as_ref().and_then(|text| table::find(&text.content, |entry| stated.is_own(entry)));
        let device = stated.device.map(|device| device.0);
        let is_live = cx.manages_running_system();
        let mounted = if is_live { live::find(stated.path.0, device)? } else { None };
        Ok(Found { text, entry, is_live, mounted })
    }

    fn bring_about(&self, cx: &Context, desired: &Properties<'_>, execution: Execution) -> Result<Change, Failure> {
        let found = self.find(cx, desired)?;
        let change = desired.change(cx, &found)?;
        let wanted = desired.wanted(found.entry.as_ref());
        let (path, missing) = (table_path(cx), Missing::create_if(true));
        let presumed = live::presumed(cx, found.mounted.as_ref(), &wanted, &change.actions)?;
        if execution == Execution::WhatIf {
            let table = || edit::presumed(&path, found.text.as_deref(), missing);
            let table = change.edited.as_ref().map_or(Ok(None), |_| table())?;
            if let Some(edited) = &change.edited {
                Files::predict(cx, &path, found.text.as_deref(), missing, edited.as_bytes());
            }
            return Ok(Change { presumed: Presumed::all([presumed, table]), ..change });
        }
        if let Some(presumed) = presumed {
            return Err(presumed.failure);
        }
        for action in &change.actions {
            live::act(cx, *action, &wanted).map_err(|failure| found.restored(cx, failure))?;
        }
        if change.edited.is_some() {
            let place = Place::find(&path, &cx.writes)?.ok_or_else(|| pending::no_directory(&path))?;
            self.files.edit(cx, &place, missing, |text| desired.edit(text))?;
            // systemd makes units of the table. Without them the table is right, and counts at the next boot.
            let outdated = cx.manages_running_system().then(service::read_units_again).and_then(Result::err);
            if let Some(failure) = outdated {
                cx.say(TraceLevel::Warn, &format!("run `systemctl daemon-reload`: {}", failure.message));
            }
        }
        Ok(change)
    }
}

impl Properties<'_> {
    fn is_own(&self, entry: &Entry) -> bool {
        entry.is_at(self.path.0, self.device.map(|device| device.0))
    }

    fn states(&self, property: &str) -> bool {
        match property {
            Properties::DEVICE => self.device.is_some(),
            Properties::FSTYPE => self.fstype.is_some(),
            Properties::OPTIONS => self.options.is_some(),
            Properties::DUMP => self.dump.is_some(),
            Properties::PASS => self.pass.is_some(),
            Properties::STATE => self.state.is_some(),
            _ => true,
        }
    }

    /// The entry as it is to be: what is not stated stays as it is.
    fn wanted(&self, entry: Option<&Entry>) -> Entry {
        let text = |stated: Option<MountText<'_>>, former: Option<&str>, otherwise: &str| {
            stated.map(|stated| stated.0).or(former).unwrap_or(otherwise).to_owned()
        };
        let is_other =
            |stated: &MountText<'_>| entry.is_none_or(|entry| Options::of(stated.0) != Options::of(&entry.options));
        Entry {
            device: text(self.device, entry.map(|entry| entry.device.as_str()), ""),
            path: self.path.0.to_owned(),
            fstype: text(self.fstype, entry.map(|entry| entry.fstype.as_str()), ""),
            options: text(
                self.options.map(|options| options.0).filter(is_other),
                entry.map(|entry| entry.options.as_str()),
                DEFAULTS,
            ),
            dump: self.dump.map(u32::from).or(entry.map(|entry| entry.dump)).unwrap_or(0),
            pass: self.pass.map(u32::from).or(entry.map(|entry| entry.pass)).unwrap_or(0),
            stray: None,
        }
    }

    fn state(&self, found: &Found) -> Object {
        let mut state: Object = [(Properties::PATH.to_owned(), Value::from(self.path.0))].into();
        state.insert(Properties::EXIST.to_owned(), Value::from(found.exists()));
        if let Some(entry) = &found.entry {
            state.extend(stated(entry));
            if let Some(options) = self
                .options
                .map(|options| options.0)
                .filter(|options| Options::of(options.0) == Options::of(&entry.options))
            {
                state.insert(Properties::OPTIONS.to_owned(), Value::from(options.0));
            }
            if let Some(stray) = &entry.stray {
                state.insert(Properties::OPTIONS.to_owned(), Value::from(format!("{} {stray}", entry.options)));
            }
        }
        if found.exists() && found.is_live {
            state.insert(Properties::STATE.to_owned(), Value::from(Activity::of(found.mounted.as_ref()).word()));
        }
        state.extend(self.otherwise_mounted(found));
        state
    }

    /// What is mounted otherwise than its entry says. Where that is wrong as well, it is what is shown.
    fn otherwise_mounted(&self, found: &Found) -> Object {
        let is_compared = self.exist && self.state == Some(Activity::Mounted);
        let (Some(mounted), Some(entry), true) = (&found.mounted, &found.entry, is_compared) else {
            return Object::new();
        };
        let wanted = self.wanted(Some(entry));
        let shown = |property: &'static str| {
            let (is_right, is) = match property {
                Properties::FSTYPE => (entry.fstype == wanted.fstype, mounted.fstype.clone()),
                Properties::DEVICE => (entry.device == wanted.device, mounted.source.clone()),
                _ => (entry.options == wanted.options, mounted.options()),
            };
            is_right.then(|| (property.to_owned(), Value::from(is)))
        };
        self.differing_live(mounted, &wanted).into_iter().filter_map(shown).collect()
    }

    /// The state that a set leads to: what is stated.
    fn after(&self, cx: &Context) -> Object {
        let text = |stated: Option<MountText<'_>>| stated.map(|stated| Value::from(stated.0));
        let number = |stated: Option<u8>| stated.map(|stated| Value::from(u64::from(stated)));
        let mut after: Object = [(Properties::PATH.to_owned(), Value::from(self.path.0))].into();
        after.insert(Properties::EXIST.to_owned(), Value::from(self.exist));
        let stated = [
            (Properties::DEVICE, text(self.device)),
            (Properties::FSTYPE, text(self.fstype)),
            (Properties::OPTIONS, text(self.options.map(|options| options.0))),
            (Properties::DUMP, number(self.dump)),
            (Properties::PASS, number(self.pass)),
            (
                Properties::STATE,
                self.state.filter(|_| cx.manages_running_system()).map(|state| Value::from(state.word())),
            ),
        ];
        let stated = stated.into_iter().filter(|_| self.exist);
        after.extend(stated.filter_map(|(name, value)| Some((name.to_owned(), value?))));
        after
    }

    /// The properties in which what is mounted is not what the entry says. An entry without options says nothing of them.
    fn differing_live(&self, mounted: &Mounted, wanted: &Entry) -> Vec<&'static str> {
        let is_said = self.options.is_some() || !Options::of(&wanted.options).is_empty();
        mounted.differing(wanted).into_iter().filter(|name| is_said || *name != Properties::OPTIONS).collect()
    }

    fn differing(&self, found: &Found) -> Vec<&'static str> {
        if !self.exist {
            return if found.exists() { vec![Properties::EXIST] } else { Vec::new() };
        }
        if !found.exists() {
            return vec![Properties::EXIST];
        }
        let wanted = self.wanted(found.entry.as_ref());
        let is_mounted = found.mounted.is_some();
        let live = found.mounted.as_ref().filter(|_| self.state == Some(Activity::Mounted));
        let live = live.map(|live| self.differing_live(live, &wanted)).unwrap_or_default();
        let entry = found.entry.as_ref();
        let differs = |of: fn(&Entry) -> &str| entry.is_none_or(|entry| of(entry) != of(&wanted));
        let number = |of: fn(&Entry) -> u32| entry.is_none_or(|entry| of(entry) != of(&wanted));
        let is_passed_over = entry.is_some_and(|entry| entry.stray.is_some());
        let state = found.is_live && self.state.is_some_and(|state| (state == Activity::Mounted) != is_mounted);
        let all = [
            (Properties::DEVICE, differs(|entry| &entry.device)),
            (Properties::FSTYPE, differs(|entry| &entry.fstype)),
            (Properties::OPTIONS, self.options.is_some() && differs(|entry| &entry.options) || is_passed_over),
            (Properties::DUMP, self.dump.is_some() && number(|entry| entry.dump)),
            (Properties::PASS, self.pass.is_some() && number(|entry| entry.pass)),
            (Properties::STATE, state),
        ];
        all.into_iter().filter(|(name, differs)| *differs || live.contains(name)).map(|(name, _)| name).collect()
    }

    /// What a set does.
    fn change(&self, cx: &Context, found: &Found) -> Result<Change, Failure> {
        let differing = self.differing(found);
        if differing.is_empty() {
            return Ok(Change::default());
        }
        let content = found.text.as_ref().map_or("", |text| text.content.as_str());
        let edited = self.edited(content)?;
        let actions = self.actions(found, &differing);
        let mut effects = self.effects(found, edited.as_deref());
        let unmounted = found.mounted.as_ref().filter(|_| actions.contains(&Action::Unmount));
        if let Some(mounted) = unmounted {
            effects.destroys.extend(mounted.lost(cx, self.path.0)?);
        }
        let mut what_if: Vec<String> = actions.iter().map(|action| action.words().to_owned()).collect();
        what_if.extend(
            unmounted.filter(|mounted| mounted.is_volatile()).map(|_| "lose its files, which are in memory".to_owned()),
        );
        let edit = match (&found.entry, self.exist) {
            (None, _) => "add the entry to /etc/fstab",
            (Some(_), true) => "change the entry in /etc/fstab",
            (Some(_), false) => "remove the entry from /etc/fstab",
        };
        what_if.extend(edited.is_some().then(|| edit.to_owned()));
        Ok(Change { differing, actions, edited, what_if, effects, presumed: None })
    }

    /// What is done to the mount, in this order.
    fn actions(&self, found: &Found, differing: &[&str]) -> Vec<Action> {
        let differs = |property: &str| differing.contains(&property);
        match (found.mounted.as_ref(), self.state) {
            _ if !found.is_live => Vec::new(),
            (Some(_), _) if !self.exist => vec![Action::Unmount],
            (Some(_), Some(Activity::Unmounted)) => vec![Action::Unmount],
            (None, Some(Activity::Mounted)) if self.exist => vec![Action::Mount],
            (Some(mounted), Some(Activity::Mounted)) => {
                let wanted = self.wanted(found.entry.as_ref());
                match self.differing_live(mounted, &wanted).as_slice() {
                    [Properties::DEVICE | Properties::FSTYPE, ..] => vec![Action::Unmount, Action::Mount],
                    [Properties::OPTIONS, ..] => vec![Action::Remount],
                    // What the kernel does not show.
                    _ if differs(Properties::OPTIONS) && !wanted.is_swap() => vec![Action::Remount],
                    _ => Vec::new(),
                }
            }
            _ => Vec::new(),
        }
    }

    /// The table afterwards, once it was read again: what was not understood is never written.
    fn edited(&self, content: &str) -> Result<Option<String>, Failure> {
        let is_own = |entry: &Entry| self.is_own(entry);
        let former = table::find(content, is_own);
        let wanted = self.exist.then(|| self.wanted(former.as_ref()));
        if former == wanted {
            return Ok(None);
        }
        let edited = match &wanted {
            Some(wanted) => table::with(content, is_own, wanted),
            None => table::without(content, is_own),
        };
        if table::find(&edited, is_own) == wanted {
            return Ok(Some(edited));
        }
        Err(blocked(Properties::PATH, format!("the entry in '{TABLE}' is written in a form that cannot be edited")))
    }

    fn edit(&self, text: Option<&Text<String>>) -> Result<Edit<()>, Failure> {
        let edited = self.edited(text.map_or("", |text| text.content.as_str()))?;
        let outcome = edited.map_or(Outcome::Keep, |edited| Outcome::Write(edited.into_bytes()));
        Ok(Edit { outcome, result: () })
    }

    fn effects(&self, found: &Found, edited: Option<&str>) -> Effects {
        let mut effects = Effects::of(match (self.exist, found.exists()) {
            (false, _) => Effect::Remove,
            (true, false) => Effect::Create,
            (true, true) => Effect::Change,
        });
        // Of what is mounted there are no claims, so that no plan could tell that an instance before creates the table as well.
        let has_claims = !found.is_live || self.state.is_none();
        match (found.text.as_deref(), edited) {
            (None, Some(edited)) if has_claims => {
                let kind = ItemKind::File { size: edited.len() as u64 };
                effects.creates.push(Item { path: TABLE.to_owned(), kind });
            }
            (Some(text), Some(edited)) if !self.exist => {
                let lines = removed_lines(&text.content, edited);
                effects.destroys.extend(lines.into_iter().map(|kind| Item { path: TABLE.to_owned(), kind }));
            }
            _ => {}
        }
        effects
    }
}
