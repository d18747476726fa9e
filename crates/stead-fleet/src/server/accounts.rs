//! Accounts of operators, which are taken by links that are used once.

use stead_hosts::MachineName;
use stead_protocol::{AcceptAnswer, AcceptRequest, Asker, InviteAnswer, InviteRequest};
use stead_release::Digest;

use super::Controller;
use super::reply::{bad, json};
use super::requests::{Answered, Asked};
use crate::new_token;
use crate::store::{Invitation, StoreWrite, WriteRefusal};

impl Controller {
    /// Offers an account to whoever has the link first.
    pub(super) async fn invite(&self, by: &MachineName, asked: &Asked) -> Answered {
        let InviteRequest { name, role, seconds } = asked.json()?;
        let name = MachineName::parse(&name).map_err(|why| Box::new(bad(format!("that is not a name: {why}"))))?;
        if Asker::of_role(&role).is_none() || seconds == 0 {
            return Err(Box::new(bad("a link has a role, viewer, operator or approver, and a time")));
        }
        let secret = new_token();
        let digest = Digest::of(secret.expose().as_bytes());
        let did = format!("invite {name} as {role} for {seconds} s: {digest}");
        let invitation = Invitation { digest, name, role, length: seconds.saturating_mul(1000) };
        self.act(by, &did, vec![StoreWrite::Invite(invitation)]).await?;
        Ok(json(&InviteAnswer { invitation: secret.expose().clone() }))
    }

    /// Makes the account of a link. Its token is made by whoever takes it, and only its digest is known here.
    pub(super) async fn take_account(&self, asked: &Asked) -> Answered {
        let AcceptRequest { invitation, token } = asked.json()?;
        let token: Digest = token.parse().map_err(|_| Box::new(bad("that is not a digest of a token")))?;
        let invitation = Digest::of(invitation.as_bytes());
        let known = invitation.clone();
        let offered = self.read(move |store| store.invitation(&known)).await?;
        let (name, role) = offered.ok_or(WriteRefusal::Invitation)?;
        let did = format!("take the account {name} as {role} by {invitation}");
        self.act(&name, &did, vec![StoreWrite::Accept { invitation, token }]).await?;
        Ok(json(&AcceptAnswer { name: name.to_string(), role }))
    }
}
