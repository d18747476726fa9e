//! The codes of what can be wrong with a document.

crate::codes! {
    WRONG_KIND = "E0201", "a value of another kind is expected",
        "A key of a document takes one kind of value: an object, a list, text, a number or a boolean. The message says \
         which, and what was found instead.\n\n\
         Frequent causes: a space is missing behind a colon (`type:a` is text), a `-` is missing in front of an element \
         of a list, or text such as `1.10` or `true` must be put in quotes to stay text.\n";
    UNKNOWN_KEY = "E0202", "a key that nothing reads",
        "Documents have a fixed set of keys at each place, and an unknown one is most likely misspelt. It is refused, \
         because a setting that is silently ignored is worse.\n\n\
         Keys are case-sensitive: `dependsOn`, not `dependson`. What is meant for a resource stands below `properties`, \
         and what is meant for readers below `metadata`, where any key may be used.\n";
    MISSING_KEY = "E0203", "a key is missing",
        "Something cannot be understood without this key. An instance needs `type`, a parameter and an output need \
         `type`, a document needs `resources`:\n\n\
         ```yaml\nresources:\n- name: os\n  type: Microsoft/OSInfo\n```\n";
    TYPE_NAME = "E0204", "not the name of a resource type",
        "A type has the form `Owner/Name` or `Owner.Area/Name`, made of letters, digits and underscores, such as \
         `Microsoft.DSC/Group`. It is not an expression: what an instance is must be known before anything runs.\n";
    WORD = "E0205", "not one of the words that are allowed",
        "The key takes one of a few words, which the message lists. They are case-sensitive.\n";
    SECURITY_CONFLICT = "E0206", "two security contexts that contradict each other",
        "`directives.securityContext` and the older `metadata.\"Microsoft.DSC\".securityContext` say with what rights a \
         document must run. They differ, so one of them is wrong. Remove the one in `metadata`.\n";
    COPY_MODE = "E0207", "a way of copying that is not supported",
        "`mode` and `batchSize` of `copy`, which ARM templates have, are refused as in DSC v3. The order of instances is \
         decided by what they depend on, and those that depend on nothing are worked on at once.\n";

    BOUNDS = "E0209", "bounds that no value can meet",
        "`minValue` and `maxValue` apply to the type `int`, `minLength` and `maxLength` to strings and arrays; and the \
         lower bound is at most the upper one.\n";
    TWO_VERSIONS = "E0210", "a version stated twice",
        "`apiVersion` is another name of `requireVersion`, which ARM templates use. An instance states a version by one \
         of the two.\n";
    FUNCTION_NAME = "E0211", "a function that could not be called",
        "A function of `functions` is called by its namespace and its name, `[space.name()]`. Both consist of letters, \
         digits and underscores, start with no digit, and occur once.\n";
    CHILD_RESOURCES = "W0212", "nested instances that are ignored",
        "`resources` of an instance is a key of ARM templates. It is read and ignored, as in DSC v3. Instances within a \
         group stand in its properties:\n\n\
         ```yaml\n- name: group\n  type: Microsoft.DSC/Group\n  properties:\n    resources:\n    - name: os\n      type: Microsoft/OSInfo\n```\n";
    OUTPUT_COPY = "W0213", "an output with `copy`",
        "`copy` in outputs is a feature of ARM templates that is not supported. The output is left out, as in DSC v3. \
         Use `map()` to compute a list.\n";
    OLD_CONTEXT = "W0214", "the security context stands in metadata",
        "`metadata.\"Microsoft.DSC\".securityContext` is the older form of `directives.securityContext`, and is still \
         obeyed. Move it there.\n";
    NO_EXPRESSION = "W0215", "text in a variable that is not an expression",
        "Text that begins with `[` is an expression, also within the objects and arrays of a variable. There dsc computes \
         nothing, so text that cannot be read as an expression, such as `[a-z]+`, stays what it is. A second bracket, \
         `[[a-z]+`, says that it is meant as text.\n";
    NOT_PORTABLE = "W0217", "not supported by dsc",
        "`stead lint --portable` reports the functions, directives and types of a document that stead supports and dsc does not.\n\
         Without them the document means the same to both.";
    WAIT = "E0216", "not a way to wait",
        "`wait` and `reconcileWait` say how long is waited before something pending is run again, in seconds:\n\n\
         ```yaml\nstatic: 3                                 # always 3 s\n\
         random: {min: 4, max: 9}                  # anything between 4 s and 9 s\n\
         exponential: {wait: 1, multiplier: 2}     # 1 s, 2 s, 4 s, ...\n\
         cap: 60                                   # with any of them: at most 60 s\n\
         jitter: 0.2                               # with any of them: up to a fifth longer, at random\n```\n\n\
         One of the first three is stated. Times and multipliers are above 0, and `min` is below `max`.\n";
    LOOP = "E0219", "a loop that cannot be carried out",
        "`copy` has either `count`, a number of instances, or `each`, a list or an object with an instance for each element or \
         member. `as` says what the item is called in expressions, as a function without arguments, so it is a word that no \
         function of the language and no loop around has already:\n\n\
         ```yaml\nresources:\n- type: Stead/File\n  copy: {name: pages, each: [index, about], as: page}\n  \
         properties: {path: \"[format('/srv/{0}.html', page())]\"}\n```\n";
    UNKNOWN_DIRECTIVE = "W0218", "a directive that nothing reads",
        "Directives say how a document or an instance is carried out. One that is not known is ignored, as DSC v3 ignores it: \
         a document may be written for a later version. One that differs from a known one by a letter or by case is refused \
         instead (E0202): without it the run would be another one.\n";
    STAYS_TEXT = "W0220", "an expression that stays text",
        "An expression is evaluated where the text begins with `[` and ends with `]`. Within other text it stays as it is, as in \
         DSC v3, and so do the placeholders of other tools, such as `{{ port }}`, `${HOME}`, `${var.port}`, `${parameters('port')}`, `%{port}` and `<%= @port %>`. Put the parts together:\n\n\
         ```yaml\nproperties: {path: port, content: \"[concat('port ', string(parameters('port')))]\"}\n```\n\n\
         For longer texts there is `Stead/Template`. `stead lint` and editors report the first one of each text. In paths: every `{{ … }}`, \
         `${NAME}` and `$NAME` in capitals. Elsewhere, and of other forms: those that name a parameter or a variable of the document, and \
         calls of `facts()`, `secret()`, `envvar()`, `reference()` and `resourceId()`. `$port` and `${port}` are reported only in names of \
         instances and in properties of `Stead/` types that no program reads, in a single line without signs of a shell. A text of up to 80 bytes \
         that is nothing but a call of one of these, or of a function that returns text, such as `concat`, is reported without its brackets. Not \
         reported are other calls, such as `[concat('a', 'b')]` within a text, since programs have such texts too, and the texts of \
         `Stead/Template`, defaults of parameters, `metadata` and files that are read. A run reports them as well.\n";
    SECRET_IN_CLEAR = "W0221", "a secret in plain text",
        "`stead lint` reports what has the form of a secret: the default of a parameter that is secure or named as a secret, a \
         private key, an AWS access key, tokens of GitHub and GitLab, the password in a URL, a token in the query of one \
         (`token=`, `access_token=`, `sig=` and the like), and the one behind `-p` of MySQL's clients. Whoever reads the document has it, and so does everything that keeps its versions. The message \
         shows the place and not the secret.\n\n\
         Remove it from the document, and change it where it is used: treat it as leaked. Pass the new one as a parameter of the type \
         `secureString`, or take it from a vault with `[secret('NAME')]`. A variable such as `$PASSWORD` and a word such as \
         `PASSWORD` are not reported.\n";
    UNKNOWN_SCHEMA = "W0222", "a `$schema` that is not the schema of documents",
        "`$schema` names the JSON Schema of documents, for editors. Its addresses begin with \
         `https://aka.ms/dsc/schemas/`, then a version such as `v3`, `v3.1` or `vNext`, and end with `config/document.json`, \
         `bundled/config/document.json` or `bundled/config/document.vscode.json`. `stead lint` reports any other one. stead does not read the schema, and the key may be left out; dsc refuses one that it does not know.\n";
    RUNS_ALWAYS = "W0223", "a command that runs on every apply",
        "A `Stead/Command` that states `set` alone runs on every apply, and its machine is never in the desired state. `test` says when \
         there is nothing to do, `creates` names a path that is there afterwards, and the directive `onChanges` runs the command \
         only after a change of something else:\n\n\
         ```yaml\nresources:\n- name: table\n  type: Stead/Command\n  properties: {test: test -e table.db, set: touch table.db}\n```\n";
    COMPARISON = "W0224", "a comparison that does not compare what was meant",
        "`equals` compares without converting: the number 80 is not the text `'80'`, and `'debian'` is not `'Debian'`. `greater`, \
         `less` and their kin compare text letter by letter, so that `'12'` is less than `'9'`. Write the value as it is, or convert \
         it:\n\n\
         ```yaml\nresources:\n- name: new\n  type: Microsoft.DSC.Debug/Echo\n  \
         condition: \"[greaterOrEquals(int('12'), 9)]\"\n  properties: {output: new}\n```\n\n\
         Reported is what is certain: the type of a parameter or variable, the allowed values of a parameter, what a function returns, and \
         the spelling of facts such as `os.family`, by `equals` and by `contains` of a list in the call. A condition that is always false \
         skips its instance.\n";
    FORMAT = "W0225", "a format that leaves values out",
        "`format` puts its values into the places `{0}`, `{1}` and so on of its first argument. `%s` and `%d` are text to it, and a value \
         without a place is left out. Write the place, or remove the value.\n";
    SECRET_ARGUMENT = "W0226", "a secret in the arguments of a command",
        "While a program runs, every user of the machine can read its arguments, in `ps` and in `/proc`. Pass a secret in the environment:\n\n\
         ```yaml\nparameters: {token: {type: secureString}}\nresources:\n- name: login\n  type: Stead/Command\n  \
         properties: {test: test -e token, set: login --token-from-environment, environment: {TOKEN: \"[parameters('token')]\"}}\n```\n\n\
         A shell that puts it into the arguments of another program shows it again. `stead lint` reports secrets in `set` and `test` of \
         `Stead/Command`, and in `command` of `Stead/Cron` and `Stead/Timer`.\n";
    TAG = "W0227", "a tag with a comma",
        "`tags` of an instance are a list, and text is one tag: `tags: \"web,db\"` is the tag `web,db`, which `--only web` does not \
         select. Write a list:\n\n\
         ```yaml\nresources:\n- {name: a, type: Stead/File, metadata: {tags: [web, db]}, properties: {path: a}}\n```\n";
    JOINED = "W0228", "lines that YAML joins",
        "Text without quotes may go on in the next line, and YAML puts a blank in place of the line break. A file of several lines has `|` \
         behind its key:\n\n\
         ```yaml\nresources:\n- name: motd\n  type: Stead/File\n  properties:\n    path: motd\n    content: |\n      Welcome.\n      \
         All is recorded.\n```\n\n\
         `>` says that one line is meant. Reported are `content`, `set` and `test`.\n";
    PARAMETER_FORM = "W0229", "a variable in the form of a parameter",
        "A variable is its value: `site: {type: string, default: web}` is an object with two members. What a caller can supply is declared in \
         `parameters`, with `defaultValue`:\n\n\
         ```yaml\nparameters: {site: {type: string, defaultValue: web}}\nvariables: {host: www}\nresources: []\n```\n";
    ENCRYPTED = "W0230", "text that ansible-vault encrypted",
        "A text that begins with `$ANSIBLE_VAULT;` is not decrypted: it would be used as it is written. A value that nobody is to read in the \
         document comes from a parameter of a secret type, which the run is given, or from a vault:\n\n\
         ```yaml\nparameters: {token: {type: secureString}}\nresources:\n- name: token\n  type: Stead/File\n  \
         properties: {path: /etc/token, mode: \"0600\", content: \"[parameters('token')]\"}\n```\n\n\
         The guide to secrets says where values come from.\n";
}
