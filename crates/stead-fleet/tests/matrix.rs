//! The matrix of identities and routes, of which the rows are the routes themselves: one more is one more row of
//! `corpus/fleet/matrix`, which somebody must write.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "../../stead-release/tests/support/mod.rs"]
mod keys;
#[path = "support/site.rs"]
mod site;

use std::fmt::Write as _;
use std::process::ExitCode;

use site::{Operators, Simulated, Site, operator};
use stead_fleet::store::StorePlace;
use stead_protocol::{ROUTES, StandingRequest, TokenRequest};
use stead_testkit::{Case, Computed, Suite};

fn main() -> ExitCode {
    stead_testkit::main(&[Suite { folder: "fleet/matrix", run }])
}

fn run(_: &Case) -> Result<Computed, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let place = StorePlace::File(folder.path().join("fleet.db"));
    let roles = ["viewer", "operator", "approver"];
    let tokens = roles.map(|role| operator(&place, role, role));
    let site = Site::start(folder.path(), &place);
    let mut machines = [("admitted", 1), ("waiting", 2), ("retired", 3)].map(|(name, key)| Simulated::new(name, key));
    let token = TokenRequest { uses: 2, seconds: 600, labels: [].into() };
    let token = site.tell(&tokens[1], "/v1/tokens", &token).json()["token"].as_str().unwrap().to_owned();
    for machine in &mut machines {
        let token = if machine.name.as_str() == "waiting" { None } else { Some(&*token) };
        assert_eq!(machine.enrol(&site, token).status, 200);
    }
    let retire = StandingRequest { standing: "retired".to_owned() };
    assert_eq!(site.tell(&tokens[1], "/v1/machines/retired/standing", &retire).status, 200);
    assert_eq!(Operators::publish(&site, &tokens[2], "root", &Operators::new().root.to_text()).status, 200);
    let mut matrix = String::new();
    for route in ROUTES {
        let path = route.path.replacen('*', "web", 1).replace('*', "1");
        let mut row = format!("{} {}:", route.method, route.path);
        let mut add = |who: &str, status: u16| write!(row, " {who} {status}").unwrap();
        add("nobody", site.ask(route.method, &path, &[], b"{}").status);
        // One that says that it is another machine.
        let thefts = ["admitted", "waiting", "retired"].map(|name| Simulated::new(name, 99));
        let statuses = thefts.map(|mut thief| thief.ask(&site, route.method, &path, "", b"{}").status);
        assert_eq!(statuses, [statuses[0]; 3], "what a machine is to the fleet is said to itself alone");
        add("thief", statuses[0]);
        for machine in &mut machines {
            let name = machine.name.to_string();
            let body: &[u8] = if route.method == "GET" { b"" } else { b"{}" };
            add(&name, machine.ask(&site, route.method, &path, "", body).status);
        }
        add("stranger", site.operator("no token", route.method, &path, b"{}").status);
        for (role, token) in roles.iter().zip(&tokens) {
            add(role, site.operator(token, route.method, &path, b"{}").status);
        }
        matrix += &row;
        matrix.push('\n');
    }
    Ok(vec![("matrix", matrix)])
}
