//! The table of the functions.

use super::declare::function;
use super::{NAMESPACE, array, cidr, encode, format, logic, number, object, own, text, unique};
use crate::expr::builtin::Run::{Asks, Lambda, Lazily, Pure, Total};
use crate::expr::builtin::ValueKind::{self, Array, Boolean, Null, Number, Object, String};
use crate::expr::builtin::{Ask, Builtin, Lazy, Sight};

const ANY: &[ValueKind] = ValueKind::VALUES;
const OWN: &[&str] = &[NAMESPACE];

/// By category, then in the order in which each is listed.
pub(in crate::expr) static TABLE: &[Builtin] = &[
    function("array", Total(array::array), &["array"])
        .takes(1, Some(1), &[ANY])
        .returns(&[Array])
        .sees(Sight::Blind)
        .says("array(<value>)", "An array whose only element is the value."),
    function("createArray", Total(array::create), &["array"])
        .takes(0, None, &[])
        .then(ANY)
        .returns(&[Array])
        .sees(Sight::Blind)
        .says("createArray(<value>, ...)", "An array of the values."),
    function("range", Pure(array::range), &["array"])
        .takes(2, Some(2), &[&[Number], &[Number]])
        .returns(&[Array])
        .says("range(<start>, <count>)", "An array of ascending integers.")
        .if_only("The count is at most 10000."),
    function("tryIndexFromEnd", Pure(array::try_index_from_end), &["array"])
        .takes(2, Some(2), &[&[Array], &[Number]])
        .returns(ANY)
        .sees(Sight::Shape)
        .says(
            "tryIndexFromEnd(<array>, <position>)",
            "The element at a position counted from the end, the last being 1, or null when there is none.",
        ),
    function("filter", Lazily(Lazy::Filter), &["array", "lambda"])
        .takes(2, Some(2), &[&[Array], &[ValueKind::Lambda]])
        .returns(&[Array])
        .says("filter(<array>, <lambda>)", "The elements of an array for which a lambda returns true."),
    function("map", Lazily(Lazy::Map), &["array", "lambda"])
        .takes(2, Some(2), &[&[Array], &[ValueKind::Lambda]])
        .returns(&[Array])
        .says("map(<array>, <lambda>)", "An array of what a lambda returns for each element."),
    function("intersection", Pure(array::intersection), &["array", "object"])
        .takes(2, None, &[&[Array, Object], &[Array, Object]])
        .then(&[Array, Object])
        .returns(&[Array, Object])
        .says(
            "intersection(<array | object>, <array | object>, ...)",
            "The elements or members that all of the arguments have.",
        )
        .if_only("The arguments are all arrays or all objects."),
    function("tryGet", Pure(array::try_get), &["array", "object"])
        .takes(2, Some(2), &[&[Array, Object], &[Number, String]])
        .returns(ANY)
        .sees(Sight::Shape)
        .says(
            "tryGet(<array | object>, <index | key>)",
            "An element or member of a value, or null when it has none of that index or key.",
        ),
    function("union", Pure(array::union), &["array", "object"])
        .takes(2, None, &[&[Array, Object], &[Array, Object]])
        .then(&[Array, Object])
        .returns(&[Array, Object])
        .says(
            "union(<array | object>, <array | object>, ...)",
            "The elements or members of all of the arguments, each once: of a member that several have, the value of the last counts as a \
             whole. stead.merge() merges objects within objects.",
        )
        .if_only("The arguments are all arrays or all objects."),
    function("contains", Pure(array::contains), &["array", "object", "string"])
        .takes(2, Some(2), &[&[Array, Object, String], &[String, Number]])
        .returns(&[Boolean])
        .says(
            "contains(<array | object | string>, <item>)",
            "Whether an array has an element, an object has a key, or a string has a part.",
        ),
    function("empty", Total(array::empty), &["array", "object", "string"])
        .takes(1, Some(1), &[&[Array, Object, String]])
        .returns(&[Boolean])
        .sees(Sight::Shape)
        .says("empty(<array | object | string>)", "Whether a value has no elements, members or characters."),
    function("length", Pure(array::length), &["array", "object", "string"])
        .takes(1, Some(1), &[&[Array, Object, String]])
        .returns(&[Number])
        .sees(Sight::Shape)
        .says("length(<array | object | string>)", "The number of elements, members or characters of a value."),
    function("concat", Pure(array::concat), &["array", "string"])
        .takes(2, None, &[&[String, Array], &[String, Array]])
        .then(&[String, Array])
        .returns(&[String, Array])
        .sees(Sight::Shape)
        .says("concat(<string | array>, <string | array>, ...)", "The strings or arrays, one behind the other.")
        .if_only("The arguments are all strings or all arrays."),
    function("first", Pure(array::first), &["array", "string"])
        .takes(1, Some(1), &[&[Array, String]])
        .returns(ANY)
        .sees(Sight::Shape)
        .says(
            "first(<array | string>)",
            "The first element of an array or the first character of a string, which must not be empty.",
        ),
    function("indexOf", Pure(array::index_of), &["array", "string"])
        .takes(2, Some(2), &[&[Array], ANY])
        .returns(&[Number])
        .says("indexOf(<array>, <item>)", "The index of the first element that equals the item, or -1."),
    function("last", Total(array::last), &["array", "string"])
        .takes(1, Some(1), &[&[Array, String]])
        .returns(ANY)
        .sees(Sight::Shape)
        .says("last(<array | string>)", "The last element of an array or the last character of a string."),
    function("lastIndexOf", Pure(array::last_index_of), &["array", "string"])
        .takes(2, Some(2), &[&[Array], ANY])
        .returns(&[Number])
        .says("lastIndexOf(<array>, <item>)", "The index of the last element that equals the item, or -1."),
    function("skip", Pure(array::skip), &["array", "string"])
        .takes(2, Some(2), &[&[Array, String], &[Number]])
        .returns(&[Array, String])
        .sees(Sight::Shape)
        .says("skip(<array | string>, <count>)", "An array or a string without its first elements or characters."),
    function("take", Pure(array::take), &["array", "string"])
        .takes(2, Some(2), &[&[Array, String], &[Number]])
        .returns(&[Array, String])
        .sees(Sight::Shape)
        .says("take(<array | string>, <count>)", "The first elements of an array or the first characters of a string."),
    function("cidrHost", Pure(cidr::host), &["cidr"])
        .takes(2, Some(2), &[&[String], &[Number]])
        .returns(&[String])
        .says(
            "cidrHost(<network>, <index>)",
            "The address of a host of a network by its index, counted from the first usable one.",
        ),
    function("cidrSubnet", Pure(cidr::subnet), &["cidr"])
        .takes(3, Some(3), &[&[String], &[Number], &[Number]])
        .returns(&[String])
        .says(
            "cidrSubnet(<network>, <prefix>, <index>)",
            "A subnet of a network by its index, once the network is split into subnets of that prefix.",
        ),
    function("parseCidr", Pure(cidr::parse), &["cidr"])
        .takes(1, Some(1), &[&[String]])
        .returns(&[Object])
        .says("parseCidr(<network>)", "The properties of a network in CIDR notation."),
    function("coalesce", Lazily(Lazy::Coalesce), &["comparison"])
        .takes(1, None, &[ANY])
        .then(ANY)
        .returns(ANY)
        .says("coalesce(<value>, ...)", "The first of the values that is not null, or null when there is none."),
    function("equals", Total(logic::equals), &["comparison"])
        .takes(2, Some(2), &[ANY, ANY])
        .returns(&[Boolean])
        .says("equals(<value>, <value>)", "Whether two values are the same."),
    function("greater", Pure(logic::greater), &["comparison"])
        .takes(2, Some(2), &[&[Number, String], &[Number, String]])
        .returns(&[Boolean])
        .says("greater(<value>, <value>)", "Whether the first of two numbers or strings is greater.")
        .if_only("The arguments are both numbers or both strings."),
    function("greaterOrEquals", Pure(logic::greater_or_equals), &["comparison"])
        .takes(2, Some(2), &[&[Number, String], &[Number, String]])
        .returns(&[Boolean])
        .says(
            "greaterOrEquals(<value>, <value>)",
            "Whether the first of two numbers or strings is greater than or equal to the second.",
        )
        .if_only("The arguments are both numbers or both strings."),
    function("less", Pure(logic::less), &["comparison"])
        .takes(2, Some(2), &[&[Number, String], &[Number, String]])
        .returns(&[Boolean])
        .says("less(<value>, <value>)", "Whether the first of two numbers or strings is less.")
        .if_only("The arguments are both numbers or both strings."),
    function("lessOrEquals", Pure(logic::less_or_equals), &["comparison"])
        .takes(2, Some(2), &[&[Number, String], &[Number, String]])
        .returns(&[Boolean])
        .says(
            "lessOrEquals(<value>, <value>)",
            "Whether the first of two numbers or strings is less than or equal to the second.",
        )
        .if_only("The arguments are both numbers or both strings."),
    function("utcNow", Asks(Ask::UtcNow), &["date"])
        .takes(0, Some(1), &[&[String]])
        .returns(&[String])
        .says("utcNow([format])", "The time at which the run began, in UTC.")
        .if_only("It can only be used as a parameter default."),
    function("context", Asks(Ask::Context), &["deployment"])
        .takes(0, Some(0), &[])
        .returns(&[Object])
        .says("context()", "What is known about the operating system and the rights of the run."),
    function("parameters", Asks(Ask::Parameter), &["deployment"])
        .takes(1, Some(1), &[&[String]])
        .returns(ANY)
        .says("parameters(<name>)", "The value of a parameter.")
        .if_only("It cannot be used in the default of a parameter."),
    function("secret", Asks(Ask::Secret), &["deployment"])
        .takes(1, Some(2), &[&[String], &[String]])
        .returns(&[String])
        .says("secret(<name>, [vault])", "A secret of a vault.")
        .if_only("Without a vault, the secret must be the same in every vault that has it."),
    function("variables", Asks(Ask::Variable), &["deployment"])
        .takes(1, Some(1), &[&[String]])
        .returns(ANY)
        .says("variables(<name>)", "The value of a variable."),
    function("lambda", Lambda, &["lambda"])
        .takes(0, Some(0), &[])
        .returns(&[ValueKind::Lambda])
        .says("lambda(<parameter>, [parameter], <body>)", "A function without a name.")
        .if_only("It is written directly as an argument, with one or two parameters."),
    function("lambdaVariables", Asks(Ask::LambdaVariable), &["lambda"])
        .takes(1, Some(1), &[&[String]])
        .returns(ANY)
        .says("lambdaVariables(<name>)", "The value of a parameter of a lambda."),
    function("and", Lazily(Lazy::And), &["logical"])
        .takes(2, None, &[&[Boolean], &[Boolean]])
        .then(&[Boolean])
        .returns(&[Boolean])
        .says(
            "and(<boolean>, <boolean>, ...)",
            "Whether all of the arguments are true; those behind the first false one are not computed.",
        ),
    function("bool", Pure(logic::boolean), &["logical"])
        .takes(1, Some(1), &[&[String, Number]])
        .returns(&[Boolean])
        .says("bool(<string | number>)", "The boolean that a string names, or whether a number is not 0."),
    function("false", Total(logic::no), &["logical"])
        .takes(0, Some(0), &[])
        .returns(&[Boolean])
        .says("false()", "The value false."),
    function("if", Lazily(Lazy::If), &["logical"]).takes(3, Some(3), &[&[Boolean], ANY, ANY]).returns(ANY).says(
        "if(<condition>, <value>, <value>)",
        "The second argument if the condition is true, else the third; the other one is not computed.",
    ),
    function("not", Total(logic::not), &["logical"])
        .takes(1, Some(1), &[&[Boolean]])
        .returns(&[Boolean])
        .says("not(<boolean>)", "The opposite of a boolean."),
    function("or", Lazily(Lazy::Or), &["logical"])
        .takes(2, None, &[&[Boolean], &[Boolean]])
        .then(&[Boolean])
        .returns(&[Boolean])
        .says(
            "or(<boolean>, <boolean>, ...)",
            "Whether any of the arguments is true; those behind the first true one are not computed.",
        ),
    function("true", Total(logic::yes), &["logical"])
        .takes(0, Some(0), &[])
        .returns(&[Boolean])
        .says("true()", "The value true."),
    function("add", Pure(number::add), &["numeric"])
        .takes(2, Some(2), &[&[Number], &[Number]])
        .returns(&[Number])
        .says("add(<integer>, <integer>)", "The sum of two integers."),
    function("copyIndex", Asks(Ask::CopyIndex), &["numeric"])
        .takes(0, Some(2), &[&[String, Number], &[Number]])
        .returns(&[Number])
        .says(
            "copyIndex([offset]) or copyIndex(<loop>, [offset])",
            "The number of the current round of a copy loop, from 0, plus an offset.",
        )
        .if_only("It can only be used when processing a 'Copy' loop."),
    function("div", Pure(number::div), &["numeric"])
        .takes(2, Some(2), &[&[Number], &[Number]])
        .returns(&[Number])
        .says("div(<integer>, <integer>)", "The quotient of two integers, rounded towards 0."),
    function("int", Pure(number::integer), &["numeric"])
        .takes(1, Some(1), &[&[String, Number]])
        .returns(&[Number])
        .says("int(<string | number>)", "The integer that a string or a number stands for; a fraction is cut off."),
    function("max", Pure(number::max), &["numeric"])
        .takes(1, None, &[&[Number, Array]])
        .then(&[Number, Array])
        .returns(&[Number])
        .says("max(<integer>, ...) or max(<array>)", "The largest of the integers."),
    function("min", Pure(number::min), &["numeric"])
        .takes(1, None, &[&[Number, Array]])
        .then(&[Number, Array])
        .returns(&[Number])
        .says("min(<integer>, ...) or min(<array>)", "The smallest of the integers."),
    function("mod", Pure(number::modulo), &["numeric"])
        .takes(2, Some(2), &[&[Number], &[Number]])
        .returns(&[Number])
        .says("mod(<integer>, <integer>)", "The remainder of a division of integers; it has the sign of the first."),
    function("mul", Pure(number::mul), &["numeric"])
        .takes(2, Some(2), &[&[Number], &[Number]])
        .returns(&[Number])
        .says("mul(<integer>, <integer>)", "The product of two integers."),
    function("sub", Pure(number::sub), &["numeric"])
        .takes(2, Some(2), &[&[Number], &[Number]])
        .returns(&[Number])
        .says("sub(<integer>, <integer>)", "The first integer less the second."),
    function("createObject", Pure(object::create), &["object"])
        .takes(0, None, &[])
        .then(ANY)
        .returns(&[Object])
        .sees(Sight::Names)
        .says("createObject(<key>, <value>, ...)", "An object of the keys and values.")
        .if_only("The arguments are pairs of a key and a value."),
    function("items", Pure(object::items), &["object"])
        .takes(1, Some(1), &[&[Object]])
        .returns(&[Array])
        .sees(Sight::Shape)
        .says("items(<object>)", "An array with an object of key and value for each member of an object."),
    function("json", Pure(object::json), &["object"])
        .takes(1, Some(1), &[&[String]])
        .returns(ANY)
        .says("json(<string>)", "The value that a JSON text stands for."),
    function("null", Total(object::null), &["object"])
        .takes(0, Some(0), &[])
        .returns(&[Null])
        .says("null()", "The value null."),
    function("objectKeys", Pure(object::keys), &["object"])
        .takes(1, Some(1), &[&[Object]])
        .returns(&[Array])
        .sees(Sight::Shape)
        .says("objectKeys(<object>)", "An array of the keys of an object."),
    function("shallowMerge", Pure(object::shallow_merge), &["object"])
        .takes(1, Some(1), &[&[Array]])
        .returns(&[Object])
        .sees(Sight::Elements)
        .says(
            "shallowMerge(<array of objects>)",
            "One object with the members of all the objects; of equal keys, the last counts.",
        ),
    function("reference", Asks(Ask::Reference), &["resource"])
        .takes(1, Some(1), &[&[String]])
        .returns(ANY)
        .says("reference(<resourceId>)", "What an instance that has run before answered."),
    function("resourceId", Pure(encode::resource_id), &["resource"])
        .takes(2, Some(2), &[&[String], &[String]])
        .returns(&[String])
        .says("resourceId(<type>, <name>)", "The identity of an instance, for reference() and dependsOn."),
    function("base64", Pure(encode::base64), &["string"])
        .takes(1, Some(1), &[&[String]])
        .returns(&[String])
        .says("base64(<string>)", "Encodes text as Base64."),
    function("base64ToString", Pure(encode::base64_to_string), &["string"])
        .takes(1, Some(1), &[&[String]])
        .returns(&[String])
        .says("base64ToString(<string>)", "The text that is written in Base64."),
    function("dataUri", Pure(encode::data_uri), &["string"])
        .takes(1, Some(1), &[&[String]])
        .returns(&[String])
        .says("dataUri(<string>)", "The text as a data URI."),
    function("dataUriToString", Pure(encode::data_uri_to_string), &["string"])
        .takes(1, Some(1), &[&[String]])
        .returns(&[String])
        .says("dataUriToString(<string>)", "The text that a data URI stands for.")
        .if_only("The URI has the form data:[<mediatype>][;base64],<data>."),
    function("endsWith", Pure(text::ends_with), &["string"])
        .takes(2, Some(2), &[&[String], &[String]])
        .returns(&[Boolean])
        .says("endsWith(<string>, <suffix>)", "Whether a string ends with another one."),
    function("format", Pure(format::format), &["string"])
        .takes(2, None, &[&[String]])
        .then(&[Boolean, Number, String])
        .returns(&[String])
        .says("format(<template>, <value>, ...)", "A template in which {0}, {1} and so on are replaced by the values."),
    function("join", Pure(text::join), &["string"])
        .takes(2, Some(2), &[&[Array], &[String]])
        .returns(&[String])
        .says("join(<array>, <delimiter>)", "The elements of an array as one string, with a delimiter between them."),
    function("path", Pure(text::path), &["string"])
        .takes(2, None, &[&[String], &[String]])
        .then(&[String])
        .returns(&[String])
        .says("path(<string>, <string>, ...)", "The parts joined to a path of a file."),
    function("startsWith", Pure(text::starts_with), &["string"])
        .takes(2, Some(2), &[&[String], &[String]])
        .returns(&[Boolean])
        .says("startsWith(<string>, <prefix>)", "Whether a string begins with another one."),
    function("string", Pure(text::string), &["string"])
        .takes(1, Some(1), &[ANY])
        .returns(&[String])
        .says("string(<value>)", "The value as text; arrays and objects as JSON."),
    function("substring", Pure(text::substring), &["string"])
        .takes(2, Some(3), &[&[String], &[Number], &[Number]])
        .returns(&[String])
        .says(
            "substring(<string>, <start>, [length])",
            "The part of a string that begins at a position and has that many characters.",
        ),
    function("toLower", Pure(text::to_lower), &["string"])
        .takes(1, Some(1), &[&[String]])
        .returns(&[String])
        .says("toLower(<string>)", "The text in lower case."),
    function("toUpper", Pure(text::to_upper), &["string"])
        .takes(1, Some(1), &[&[String]])
        .returns(&[String])
        .says("toUpper(<string>)", "The text in upper case."),
    function("trim", Pure(text::trim), &["string"])
        .takes(1, Some(1), &[&[String]])
        .returns(&[String])
        .says("trim(<string>)", "The text without space at its beginning and end."),
    function("uniqueString", Pure(unique::unique_string), &["string"])
        .takes(1, None, &[&[String]])
        .then(&[String])
        .returns(&[String])
        .says(
            "uniqueString(<string>, ...)",
            "Thirteen letters and digits that depend on the strings and on nothing else.",
        ),
    function("uri", Pure(encode::uri), &["string"])
        .takes(2, Some(2), &[&[String], &[String]])
        .returns(&[String])
        .says("uri(<base>, <relative>)", "The absolute URI that a relative one means, seen from a base."),
    function("uriComponent", Pure(encode::uri_component), &["string"])
        .takes(1, Some(1), &[&[String]])
        .returns(&[String])
        .says("uriComponent(<string>)", "Encodes text as a part of a URI, by percent-encoding."),
    function("uriComponentToString", Pure(encode::uri_component_to_string), &["string"])
        .takes(1, Some(1), &[&[String]])
        .returns(&[String])
        .says("uriComponentToString(<string>)", "The text that an encoded part of a URI stands for."),
    function("envvar", Asks(Ask::EnvironmentVariable), &["system"])
        .takes(1, Some(1), &[&[String]])
        .returns(&[String])
        .says("envvar(<name>)", "The value of an environment variable, which must exist."),
    function("facts", Asks(Ask::Facts), &["system"])
        .takes(0, Some(1), &[&[String]])
        .returns(ANY)
        .says("facts([path])", "What is known about the machine, or the fact at a path such as 'os.family'."),
    function("restartRequired", Asks(Ask::RestartRequired), &["system"])
        .takes(1, Some(2), &[&[String], &[String]])
        .returns(&[Boolean])
        .says("restartRequired(<process | service | system>, [name])", "Whether an instance has asked for a restart.")
        .if_only("The name is required for a process and a service, and not allowed for the system."),
    function("stateChanged", Asks(Ask::StateChanged), &["system"])
        .takes(1, Some(1), &[&[String]])
        .returns(&[Boolean])
        .says("stateChanged(<resourceId>)", "Whether an instance that has run before was changed by this run."),
    function("stdout", Asks(Ask::Stdout), &["system"])
        .takes(0, Some(0), &[])
        .returns(&[String])
        .says("stdout()", "What the import extension's process wrote."),
    function("systemRoot", Asks(Ask::SystemRoot), &["system"])
        .takes(0, Some(0), &[])
        .returns(&[String])
        .says("systemRoot()", "The root directory of the system that is managed."),
    function("tryWhich", Asks(Ask::Executable), &["system"])
        .takes(1, Some(1), &[&[String]])
        .returns(&[String, Null])
        .says("tryWhich(<name>)", "The path of an executable, or null when there is none."),
    function("stead.baseName", Pure(own::base_name), OWN)
        .takes(1, Some(1), &[&[String]])
        .returns(&[String])
        .says("stead.baseName(<path>)", "The last part of a path."),
    function("stead.dirName", Pure(own::dir_name), OWN)
        .takes(1, Some(1), &[&[String]])
        .returns(&[String])
        .says("stead.dirName(<path>)", "A path without its last part, or '.' when it has only one."),
    function("stead.distinct", Pure(own::distinct), OWN)
        .takes(1, Some(1), &[&[Array]])
        .returns(&[Array])
        .says("stead.distinct(<array>)", "The elements of an array, each once, where it was first."),
    function("stead.file", Asks(Ask::File), OWN)
        .takes(1, Some(1), &[&[String]])
        .returns(&[String])
        .says("stead.file(<path>)", "The content of a text file.")
        .if_only(
            "A relative path starts at the folder of the document and does not leave it; the file has at most 16 MiB.",
        ),
    function("stead.flatten", Pure(own::flatten), OWN)
        .takes(1, Some(1), &[&[Array]])
        .returns(&[Array])
        .sees(Sight::Elements)
        .says(
            "stead.flatten(<array>)",
            "An array in which the elements of nested arrays take the place of those arrays.",
        )
        .if_only("Only one level is flattened."),
    function("stead.fromYaml", Pure(own::from_yaml), OWN)
        .takes(1, Some(1), &[&[String]])
        .returns(ANY)
        .says("stead.fromYaml(<string>)", "The value that a YAML text stands for."),
    function("stead.indent", Pure(own::indent), OWN)
        .takes(2, Some(2), &[&[String], &[Number]])
        .returns(&[String])
        .says("stead.indent(<string>, <count>)", "A text with spaces in front of each line that is not empty."),
    function("stead.lines", Pure(own::lines), OWN)
        .takes(1, Some(1), &[&[String]])
        .returns(&[Array])
        .says("stead.lines(<string>)", "An array of the lines of a text, without their line breaks."),
    function("stead.merge", Pure(own::merge), OWN)
        .takes(1, None, &[&[Object]])
        .then(&[Object])
        .returns(&[Object])
        .says(
            "stead.merge(<object>, <object>, ...)",
            "One object with the members of all; nested objects are merged too, and of other values the last counts.",
        ),
    function("stead.regexGroups", Pure(own::regex_groups), OWN)
        .takes(2, Some(2), &[&[String], &[String]])
        .returns(&[Array, Null])
        .says(
            "stead.regexGroups(<string>, <pattern>)",
            "An array of the first match of a regular expression and its groups, or null when there is none.",
        )
        .if_only("A group that does not take part in the match is null."),
    function("stead.regexMatch", Pure(own::regex_match), OWN)
        .takes(2, Some(2), &[&[String], &[String]])
        .returns(&[Boolean])
        .says("stead.regexMatch(<string>, <pattern>)", "Whether a regular expression matches a part of a string.")
        .if_only("Anchor the pattern with ^ and $ to match the whole string."),
    function("stead.regexReplace", Pure(own::regex_replace), OWN)
        .takes(3, Some(3), &[&[String], &[String], &[String]])
        .returns(&[String])
        .says(
            "stead.regexReplace(<string>, <pattern>, <replacement>)",
            "A string in which each match of a regular expression is replaced.",
        )
        .if_only("In the replacement, ${1} or ${name} stands for a group of the match, and $$ for $."),
    function("stead.replace", Pure(own::replace), OWN)
        .takes(3, Some(3), &[&[String], &[String], &[String]])
        .returns(&[String])
        .says("stead.replace(<string>, <old>, <new>)", "A string in which each occurrence of a text is replaced."),
    function("stead.reverse", Pure(own::reverse), OWN)
        .takes(1, Some(1), &[&[Array]])
        .returns(&[Array])
        .sees(Sight::Shape)
        .says("stead.reverse(<array>)", "The elements of an array from the last to the first."),
    function("stead.sha256", Pure(own::sha256), OWN)
        .takes(1, Some(1), &[&[String]])
        .returns(&[String])
        .says("stead.sha256(<string>)", "The SHA-256 checksum of a text, in hexadecimal digits."),
    function("stead.shellQuote", Pure(own::shell_quote), OWN)
        .takes(1, Some(1), &[&[String]])
        .returns(&[String])
        .says("stead.shellQuote(<string>)", "A text quoted as one word for a POSIX shell."),
    function("stead.sort", Pure(own::sort), OWN)
        .takes(1, Some(1), &[&[Array]])
        .returns(&[Array])
        .says("stead.sort(<array>)", "The elements of an array in ascending order.")
        .if_only("The elements are all strings or all numbers; strings are compared character by character."),
    function("stead.split", Pure(own::split), OWN)
        .takes(2, Some(2), &[&[String], &[String]])
        .returns(&[Array])
        .says("stead.split(<string>, <delimiter>)", "An array of the parts of a string between the delimiters."),
    function("stead.template", Pure(own::template), OWN)
        .takes(2, Some(2), &[&[String], &[Object]])
        .returns(&[String])
        .says(
            "stead.template(<template>, <variables>)",
            "A Jinja2 template rendered with variables.",
        )
        .if_only("A variable that is not defined is an error."),
    function("stead.templateFile", Pure(own::template), OWN)
        .takes(2, Some(2), &[&[String], &[Object]])
        .returns(&[String])
        .says(
            "stead.templateFile(<path>, <variables>)",
            "A Jinja2 template in a file, rendered with variables: short for stead.template(stead.file(<path>), <variables>).",
        ),
    function("stead.toJson", Pure(own::to_json), OWN)
        .takes(1, Some(1), &[ANY])
        .returns(&[String])
        .says("stead.toJson(<value>)", "A value as JSON text with line breaks and indentation."),
    function("stead.toYaml", Pure(own::to_yaml), OWN)
        .takes(1, Some(1), &[ANY])
        .returns(&[String])
        .says("stead.toYaml(<value>)", "A value as YAML text."),
];
