//! The picture of the README is what a terminal shows of a real run; `STEAD_BLESS=1` draws it again.

use std::collections::BTreeMap;
use std::fs;

use anstyle_svg::{Palette, Term};
use stead_testkit::repository;

use crate::reader::Reader;

const COMMANDS: [&str; 4] = [
    "stead plan examples/welcome.yaml --set folder=$HOME/site",
    "stead apply examples/welcome.yaml --set folder=$HOME/site --brief",
    "echo '<h1>Defaced</h1>' > site/site/index.html",
    "stead check examples/welcome.yaml --set folder=$HOME/site",
];

/// The colours of a terminal by the numbers of ANSI: readable on white, and on nearly black.
const LIGHT: [u32; 16] = [
    0x24_292f, 0xcf_222e, 0x11_6329, 0x7d_4e00, 0x09_69da, 0x82_50df, 0x1b_7c83, 0x57_606a, //
    0x57_606a, 0xa4_0e26, 0x1a_7f37, 0x63_3c01, 0x21_8bff, 0xa4_75f9, 0x31_92aa, 0x6e_7781,
];
const DARK: [u32; 16] = [
    0x48_4f58, 0xff_7b72, 0x3f_b950, 0xd2_9922, 0x58_a6ff, 0xbc_8cff, 0x39_c5cf, 0xb1_bac4, //
    0x6e_7681, 0xff_a198, 0x56_d364, 0xe3_b341, 0x79_c0ff, 0xd2_a8ff, 0x56_d4dd, 0xff_ffff,
];

fn rgb(color: u32) -> anstyle::RgbColor {
    let [_, red, green, blue] = color.to_be_bytes();
    anstyle::RgbColor(red, green, blue)
}

fn drawn(screen: &str, palette: [u32; 16], text: u32, background: u32) -> String {
    let term = Term::new()
        .palette(Palette::from(palette.map(rgb)))
        .fg_color(rgb(text).into())
        .bg_color(rgb(background).into());
    term.render_svg(screen)
}

#[test]
fn the_picture_is_that_of_a_real_run() {
    let reader = Reader::new();
    let shown = |command: &&str| ["$ ", command, "\n", &reader.in_colours(command)].concat();
    let screen = COMMANDS.iter().map(shown).collect::<Vec<_>>().concat();
    assert!(screen.contains("\x1b["), "there are no colours in {screen}");
    assert!(screen.ends_with("Check: 1 drifted, 4 in desired state, 0 failed in 2 ms\n"), "{screen}");
    let pictures = BTreeMap::from([
        ("docs/terminal-dark.svg", drawn(&screen, DARK, 0xe6_edf3, 0x0d_1117)),
        ("docs/terminal-light.svg", drawn(&screen, LIGHT, 0x24_292f, 0xff_ffff)),
    ]);
    for (path, picture) in pictures {
        if std::env::var_os("STEAD_BLESS").is_some() {
            fs::write(repository().join(path), picture).unwrap();
        } else {
            assert!(fs::read_to_string(repository().join(path)).unwrap() == picture, "{path} is not what is printed");
        }
    }
}
