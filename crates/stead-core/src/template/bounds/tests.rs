use super::*;

fn marked(text: &str) -> String {
    let bounded = bounded(text).unwrap_or_else(|problem| panic!("{text}: {problem:?}"));
    assert_eq!(as_written(&bounded), text);
    bounded
        .replace(OPEN, "(")
        .replace(REPEATED, "#")
        .replace(MEASURED, "$")
        .replace(JOINED, "@")
        .replace(ASSIGNED, ")!")
}

#[test]
fn what_is_beside_a_plus_and_what_is_assigned_is_marked() {
    for (text, expected) in [
        ("a + b {{ 'c' }}", "a + b {{ 'c' }}"),
        ("{{ a + b }}", "{{ a@ + b@ }}"),
        ("{{a+b.c[0]|d(1+x)-e}}", "{{a@+b.c[0]$|d((1@+x@)!)@-e}}"),
        ("{{ [a + b, c] + (d + e) * f }}", "{{ [a@ + b@, c]@ + (d@ + e@)# * f# }}"),
        ("{{ a + b if c else d + e }}", "{{ a@ + b@ if c else d@ + e@ }}"),
        ("{{ 'a + b' + \"\\\"+\" }}", "{{ 'a + b'@ + \"\\\"+\"@ }}"),
        ("{{ 1 + 'a'if b }}", "{{ 1@ + 'a'@if b }}"),
        ("{{ -a + -b + 1.5 }}", "{{ -a@ + -b@ + 1.5@ }}"),
        ("{{ {'a': {'b': 1 + c}} }}", "{{ {'a': {'b': 1@ + c@}} }}"),
        ("{%- set n.l = n.l + [1] -%}", "{%- set n.l =( n.l@ + [1]@)! -%}"),
        ("{% set a = b == c %}", "{% set a =( b$ == c$)! %}"),
        ("{% set a = 'b' %}", "{% set a = 'b' %}"),
        ("{% set a %}+{% endset %}", "{% set a %}+{% endset %}"),
        ("{% for a in b + c if d in e %}", "{% for a in( b@ + c@)! if d$ in e$ %}"),
        ("{% for a in b recursive %}", "{% for a in( b)! recursive %}"),
        ("{% with a = b, c = [d] %}", "{% with a =( b)!, c =( [d])! %}"),
        ("{% macro f(a, b=c) %}{% call(d) f(*e, b=g) %}", "{% macro f(a, b=c) %}{% call(d) f(*(e)!, b=(g)!) %}"),
        ("{{ f('a', 1, b='c') }}", "{{ f('a', 1, b='c') }}"),
        ("{{ f(a) == g(b)|list }}", "{{ f((a)!)$ == g((b)!)$|list$ }}"),
        ("{{ [a] in (b) and [c] is not in [d] }}", "{{ [a]$ in (b)$ and [c]$ is not in [d]$ }}"),
        ("{% raw %}{{ a + b }}{% endraw %}{{ c + d }}", "{% raw %}{{ a + b }}{% endraw %}{{ c@ + d@ }}"),
        (
            "{%- raw -%}{{ a + b }}{% endraw x %}{{ a + b }}{%+ endraw -%}{{ c + d }}",
            "{%- raw -%}{{ a + b }}{% endraw x %}{{ a + b }}{%+ endraw -%}{{ c@ + d@ }}",
        ),
        ("{# a {{ b + c #}{{+ a +}}", "{# a {{ b + c #}{{+ a +}}"),
        ("{{ a is defined and b + c }}", "{{ a is defined and b@ + c@ }}"),
        ("{{ 'ä' ~ ü + ö }}", "{{ 'ä' ~ ü@ + ö@ }}"),
        ("{{ a +", "{{ a@ +"),
        ("{{ 'a", "{{ 'a"),
    ] {
        assert_eq!(marked(text), expected, "{text}");
    }
}

#[test]
fn what_recursion_goes_through_is_short() {
    let refused = |text: &str| bounded(text).err().map(|(line, _)| line);
    assert_eq!(refused(&format!("a\n{{{{ a{} }}}}", "|list".repeat(LONGEST + 1))), Some(2));
    assert_eq!(refused(&format!("{{{{ [a{}] }}}}", ", b.c".repeat(10 * LONGEST))), None);
    for depth in [MOST_NESTED, MOST_NESTED + 1] {
        let is_refused = (depth > MOST_NESTED).then_some(1);
        for (open, close) in [("dict(", ")"), ("x[", "]"), ("[", "]"), ("{1: ", "}"), ("1|default(", ")")] {
            let text = format!("{{{{ {}x{} }}}}", open.repeat(depth), close.repeat(depth));
            assert_eq!(refused(&text), is_refused, "{text}");
        }
        for (open, close) in [("if 0", "endif"), ("set a", "endset"), ("filter upper", "endfilter")] {
            let (open, close) = (format!("{{% {open} %}}"), format!("{{% {close} %}}"));
            let text = open.repeat(depth) + &close.repeat(depth);
            assert_eq!(refused(&text), is_refused, "{text}");
            assert_eq!(refused(&(open + &close).repeat(depth)), None);
        }
    }
    let many = LONGEST + 1;
    for text in [
        format!("{{{{ {}1 }}}}", "not ".repeat(many)),
        format!("{{{{ 1{} }}}}", " == 1".repeat(many)),
        format!("{{{{ 1{} }}}}", " if 1 else 1".repeat(many)),
        format!("{{{{ {}1{} }}}}", "(".repeat(40), " or 1 or 1 or 1 or 1 or 1 or 1)".repeat(40)),
        format!("{{{{ {}1{} }}}}", "not not not not not not (".repeat(40), ")".repeat(40)),
        format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(many)),
        format!("{{% raw %}}{{% endraw x %}}{{{{ \"{{% endraw %}}{{{{ 1{} }}}}", "+1".repeat(many)),
    ] {
        assert_eq!(refused(&text), Some(1), "{text}");
    }
}
