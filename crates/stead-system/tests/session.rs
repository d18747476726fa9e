//! Programs that are talked to over a socket.

use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use stead_system::Cancel;
use stead_system::process::{ConversationError, Environment, Executable, Exit, Heard, Program, ProgramSession};
use stead_system::socket::Listener;

const SOON: Duration = Duration::from_mins(1);

fn shell() -> Executable {
    Executable::open("/bin/sh".into(), &Environment::default()).expect("a shell")
}

#[test]
fn a_process_that_does_not_belong_to_the_program_is_turned_away() {
    let folder = tempfile::tempdir().unwrap();
    let listener = Listener::bind(&folder.path().join("s")).unwrap();
    let stranger = UnixStream::connect(folder.path().join("s")).unwrap();
    let program = Program {
        executable: &shell(),
        arguments: &["-c".into(), "echo printed; exit 3".into()],
        directory: Path::new("/"),
        environment: &Environment::of_this_process(&[]),
        variables: &[],
        input: None,
    };
    let mut printed = Vec::new();
    let mut hear = |heard: Heard<'_>| {
        if let Heard::Printed(_, bytes) = heard {
            printed.extend_from_slice(bytes);
        }
        ControlFlow::Continue(())
    };
    let session = ProgramSession::start(&program, &listener, 1 << 10, SOON, &Cancel::default(), &mut hear);
    assert!(matches!(session, Err(ConversationError::Ended(Some(Exit::Code(3))))));
    assert_eq!(printed, b"printed\n");
    drop(stranger);
}
