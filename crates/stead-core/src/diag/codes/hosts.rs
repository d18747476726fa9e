//! Findings about inventories and filters of machines.

crate::codes! {
    FORM = "E1201", "an inventory is invalid",
        "An inventory lists machines by their names, each with labels and parameters:\n\n\
         `machines: {web1: {address: web1.example.org, labels: {role: web}, parameters: {port: 80}}}`\n\n\
         `user`, `port` and `parameters` beside `machines` are for all machines. `layers` is a list of parameters for\n\
         those that match a filter: `{where: role=web, parameters: {port: 80}}`. A later layer wins over an earlier one,\n\
         and the parameters of a machine over all layers. Inventories of Ansible are read as well.";
    NAME = "E1202", "the name of a machine, an address or a user is invalid",
        "Names of machines have letters, digits, `.`, `_` and `-`, and begin with a letter, a digit or `_`. Addresses may\n\
         have `:` and `%` as well, and users `@` and `+`. Other texts are refused, since `ssh` would take some of them for\n\
         options, and a shell or a terminal for commands.";
    FILTER = "E1203", "a filter of machines is invalid",
        "A filter compares labels: `role=web`, `site!=lab`, `role in (web, db)`, `role not in (web, db)`, and `old` alone\n\
         for machines that have the label. `and`, `or`, `not` and parentheses join them. `*` stands for any text, unless\n\
         the value is in quotes; `name` is the name of the machine.";
    LAYERS = "E1205", "layers of parameters are invalid",
        "A file of parameters may have `layers`: a list of parameters, each perhaps with a filter `where` over labels and facts of\n\
         the machine. A later layer wins over an earlier one, unless `merge` says otherwise for a parameter: `last`, `unique`\n\
         (arrays, each item once), `hash` (members of objects) or `deep` (objects and arrays, at any depth), as in\n\
         `{layers: [{parameters: {port: 80}}, {where: role=web, parameters: {port: 8080}}], merge: {packages: unique}}`.";
    ANSIBLE = "W1204", "a part of an inventory of Ansible that is not understood",
        "Groups become labels, their variables parameters, and `ansible_host`, `ansible_user` and `ansible_port` say where\n\
         a machine is. Other variables that begin with `ansible_` are settings of Ansible, and templates are\n\
         not evaluated: they are left out.";
}
