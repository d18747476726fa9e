//! Standard output and standard error where both go to one place.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::time::Duration;

use super::Place;

/// Each write to a socket of datagrams arrives by itself: where one was a part of a line, a line of standard output could get into it.
#[test]
fn each_line_on_standard_error_is_written_in_one_piece() {
    let place = Place::new();
    place.write("a.yaml", "resources:\n- {name: a, type: Stead/File, directives: {reconcileWait: 0.01}, properties: {path: a, source: b}}\n");
    for (arguments, lines) in [
        (&["explain", "nothing-of-the-kind"][..], 2),
        (&["apply", "a.yaml", "--reconcile", "continuous", "--max-pending-reruns", "2"], 1),
        (&["apply", "a.yaml", "--events", "--reconcile", "continuous", "--max-pending-reruns", "2"], 3),
    ] {
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        let mut command = place.command(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::from(OwnedFd::from(theirs)));
        let mut program = command.spawn().unwrap();
        // Nobody waits for what comes no more: the socket does not say that the other end is closed.
        ours.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let (mut piece, mut pieces) = (vec![0; 1 << 16], Vec::new());
        let status = loop {
            let ended = program.try_wait().unwrap();
            while let Ok(length) = ours.recv(&mut piece) {
                pieces.push(String::from_utf8_lossy(&piece[..length]).into_owned());
            }
            if let Some(status) = ended {
                break status;
            }
        };
        assert!(pieces.len() >= lines, "{arguments:?} ends with {status}: {pieces:?}");
        assert!(pieces.iter().all(|piece| piece.ends_with('\n')), "{arguments:?}: {pieces:?}");
    }
}
