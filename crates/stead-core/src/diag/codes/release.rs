//! Reasons why something signed is refused.

crate::codes! {
    FORM = "E1401", "not a release, a roster, a list of signers or a root statement",
        "What operators sign is a file of lines with signatures behind them, as `stead release` writes it. It is read only as it was\n\
         written: a line that was changed, moved or added by hand is refused, and so is a signature that `ssh-keygen -Y sign` did\n\
         not write. Keys are Ed25519 or ECDSA over P-256, in files or in hardware.";
    PURPOSE = "E1402", "signed for another purpose",
        "A signature counts for one kind of statement: its namespace is `stead-release`, `stead-roster` or `stead-signers`. What\n\
         was signed as something else is nothing here.";
    ALTERED = "E1403", "changed after it was signed",
        "A signature does not match the bytes that it is behind. Get the file again from whoever signed it.";
    UNSIGNED = "E1404", "too few signatures",
        "A list of signers says how many of them must sign, two at least where there are two. `stead release sign FILE --sign KEY`\n\
         adds a signature.";
    TWICE = "E1405", "one key counted twice",
        "Each signer counts once, however often a key signs. Remove the second signature, and have another signer sign.";
    STRANGER = "E1406", "signed by somebody who is not a signer",
        "The signatures must all be by keys of the list of signers in force. `stead release verify` shows the list.";
    RETIRED = "E1407", "signed by somebody who no longer signs",
        "Another list of signers took over from this one, and the release comes behind the last one that the former list may sign.\n\
         Make it again, and have today's signers sign it.";
    SIGNERS = "E1408", "a list of signers that is not known",
        "A statement names the list of signers that signs it. This one names a list that does not lead back to the root of the\n\
         fleet, or that the source does not have.";
    FLEET = "E1409", "of another fleet",
        "It names the digest of another root statement than the one that this machine was given, or that `--fleet` names. Each\n\
         fleet has its own signers, and nothing of one counts in another.";
    CHANNEL = "E1410", "of another channel",
        "A release names its channel, and counts in no other: the numbers of each channel are its own. To publish a bundle in two\n\
         channels, make a release for each.";
    OLDER = "E1411", "older than what was seen before",
        "Numbers only grow. To go back, make a new release of the old bundle. A source that shows less of a channel than its\n\
         signers agreed on is refused as well.";
    FORKED = "E1412", "one number with two contents",
        "Two statements of one number were signed. Nothing is taken from such a source until an operator has looked at both: either two\n\
         operators published at the same time, or a key is in wrong hands.";
    PARENT = "E1413", "does not follow what was seen before",
        "Each release names the one before it. A source must have all of them from the one on that the machine has seen last.";
    EXPIRED = "E1414", "expired",
        "It is not staged any more; what was staged before is kept. Publish a new release, perhaps of the same bundle. The time is\n\
         that of the machine, or the newest that a signer stated, if that is later.";
    NOT_SELECTED = "E1415", "not for this machine",
        "Its selector does not match this machine: the labels that operators signed for it in the roster, and its own facts. What\n\
         was staged before is kept.";
    ROOT = "E1416", "another root statement",
        "A machine is given the digest of the root statement when it begins to follow. This file has another one.";
    NOT_IN_ROSTER = "E1417", "a machine that the roster does not name",
        "A machine follows under a name of the roster, which operators signed. `stead release roster add NAME` adds it, and\n\
         `stead agent follow --name NAME` says which one it is.";
    AMBIGUOUS = "E1418", "two channels for one machine",
        "The newest releases of two channels both match this machine, and nothing is staged. Change a selector with a new release, so\n\
         that one channel is left. A channel that is given up ends with a release that matches no machine.";
    BUNDLE = "E1419", "not the bundle that was signed",
        "A release names its bundle by the digest of its content. What the source has under that name has another content; put the\n\
         file there again.";
    OTHER_RELEASE = "E1431", "an envelope of another release",
        "The secrets of a release lie beside it, sealed to each machine that they are for. An envelope names the release that it was\n\
         made for, and counts for no other. `stead release seal` makes those of a release.";
    OTHER_MACHINE = "E1432", "an envelope or a report of another machine",
        "An envelope is for one machine by its name and its key, and a report is signed by the key of the machine that it names. After\n\
         `stead agent identity --new` the roster needs the new keys, and `stead release seal` seals to them.";
    UNOPENED = "E1433", "an envelope that cannot be opened",
        "What was sealed has been changed on its way. `stead release seal` makes the envelope again.";
    OTHER_SECRETS = "E1434", "other secrets than were signed for",
        "A release commits to its secrets without showing them, and signers sign that. Whoever has the public key of a machine can seal to\n\
         it, but nothing else than these secrets is taken. Seal the file that `stead release make --secrets-out` wrote for this release.";
    NOT_SECRET = "E1435", "a sealed value of a parameter that is not secret",
        "The document of a release declares a parameter in the clear whose value is sealed: it would be shown in reports. `stead release make`\n\
         makes no such release. Declare the parameter as `secureString` or `secureObject`, and make the release again.";
    NOT_ADMITTED = "E1441", "a machine that its controller refuses",
        "The controller answers this machine, and does not admit it: the token was used up or is over, another machine has the name, or\n\
         an operator retired its key. The message is the controller's. What was staged is kept, and the machine asks again, later and\n\
         later; `stead agent join` with another token has it ask at once.";
    NOT_A_CHANNEL = "E1442", "a channel that the roster does not name",
        "The controller offers a release in a channel that is not in the signed roster, so the machine refuses it. Run\n\
         `stead release roster add` and publish the new roster. What was staged before is kept.";
}
