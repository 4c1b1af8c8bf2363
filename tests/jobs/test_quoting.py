"""Values arrive byte for byte from every allowed place, and every other place is refused."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.quoting import scan, variable_of

VALUES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
NASTY = [
    "", " ", "a b", "$(touch /tmp/owned)", "`id`", "'", '"', "\\", "\n", "$x", "*", "~", "-n",
    "'; exit 1; '", '"; exit 1; "', "EOF", "\nEOF\n", "}", "${HOME}", "#", "!", "é🐉\u202e", "\r\n",
]  # fmt: skip
# Script, and where the value is in what it prints.
PLACES = {
    "bare": "printf '<%s>' {{ x }}",
    "bare in a word": "printf '<%s>' a{{ x }}b",
    "assignment": "v={{ x }}; printf '<%s>' \"$v\"",
    "double": "printf '<%s>' \"a{{ x }}b\"",
    "single": "printf '<%s>' 'a{{ x }}b'",
    "single with a double quote inside": "printf '<%s>' 'say \"{{ x }}\"'",
    "heredoc": "cat <<EOF\na{{ x }}b\nEOF\n",
    "heredoc with tabs": "cat <<-EOF\n\ta{{ x }}b\n\tEOF\n",
    "after a comment": "# it's a comment\nprintf '<%s>' {{ x }}",
    "in a substitution": "printf '<%s>' \"$(printf '%s.' {{ x }})\"",
    "in a substitution in double quotes": 'v="$(printf \'%s.\' "{{ x }}")"; printf \'<%s>\' "$v"',
    "in a subshell": "(printf '<%s>' {{ x }})",
    "after a hash within a word": "printf '<%s>' a#{{ x }}",
    "after two here-documents": "cat <<A <<B >/dev/null\n1\nA\n2\nB\nprintf '<%s>' {{ x }}",
    "after a case": "case a in (a) printf '<%s>' {{ x }};; esac",
}
EXPECTED = {
    "bare": "<{}>", "bare in a word": "<a{}b>", "assignment": "<{}>", "double": "<a{}b>",
    "single": "<a{}b>", "single with a double quote inside": '<say "{}">',
    "heredoc": "a{}b\n", "heredoc with tabs": "a{}b\n", "after a comment": "<{}>",
    "in a substitution": "<{}.>", "in a substitution in double quotes": "<{}.>",
    "in a subshell": "<{}>", "after a hash within a word": "<a#{}>",
    "after two here-documents": "<{}>", "after a case": "<{}>",
}  # fmt: skip


def run(script: str, value: str, *, shell: str = "sh") -> bytes:
    environment = {"PATH": "/usr/bin:/bin", variable_of("x"): value, "LC_ALL": "C.UTF-8"}
    done = subprocess.run([shell, "-c", script], env=environment, capture_output=True, check=True)
    return done.stdout


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize("place", PLACES)
def test_nasty_values_arrive_from_every_allowed_place(place, shell) -> None:
    scanned = scan(PLACES[place], known=["x"])
    assert scanned.faults == ()
    assert scanned.used == {"x"}
    for value in NASTY:
        printed = run(scanned.text, value, shell=shell)
        assert printed == EXPECTED[place].format(value).encode(), (place, value)


@settings(max_examples=25, deadline=None)
@given(value=VALUES, place=st.sampled_from(sorted(PLACES)))
def test_any_value_arrives_byte_for_byte(value, place) -> None:
    scanned = scan(PLACES[place], known=["x"])
    assert run(scanned.text, value) == EXPECTED[place].format(value).encode()


@pytest.mark.parametrize(
    ("script", "line", "word"),
    [
        ("# {{ x }}", 1, "comment"),
        ("echo a # {{ x }}", 1, "comment"),
        ("echo\necho `echo {{ x }}`", 2, "backticks"),
        ("cat <<'EOF'\n{{ x }}\nEOF\n", 2, "delimiter is quoted"),
        ('cat <<"EOF"\n{{ x }}\nEOF\n', 2, "quoted delimiter"),
        ("cat <<\\EOF\n{{ x }}\nEOF\n", 2, "quoted delimiter"),
        ("cat <<{{ x }}\n", 1, "delimiter cannot be"),
        ("echo ${y:-{{ x }}}", 1, "${…}"),
        ("echo $(( {{ x }} + 1 ))", 1, "$((…))"),
        ("echo $'{{ x }}'", 1, "$'…'"),
        ("echo \\{{ x }}", 1, "backslash"),
        ("echo ${{ x }}", 1, "after a $"),
        ("#!/usr/bin/env python3\nprint({{ x }})", 1, "python3"),
        ("#!/usr/bin/perl\nprint {{ x }}", 1, "perl"),
        ("echo {{ y }}", 1, "no parameter y"),
        ("echo '{{ x }}", 1, "still open"),
        ("echo a\0", 1, "NUL"),
    ],
)
def test_every_other_place_is_refused_with_line_and_remedy(script, line, word) -> None:
    faults = scan(script, known=["x"]).faults
    expected = word.replace("delimiter is quoted", "quoted delimiter")
    assert [fault.line for fault in faults] == [line]
    assert expected in faults[0].message


def test_a_script_without_parameters_is_left_alone_whatever_it_is() -> None:
    for script in ("#!/usr/bin/python3\nprint('{}')\n", "echo 'open", "cat <<EOF\n", "{ { x } }"):
        scanned = scan(script, known=["x"])
        assert (scanned.text, scanned.faults) == (script, ())


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="{x} '\"\\$()`<EOF\n-#;", max_size=60))
def test_no_script_breaks_the_scanner_or_loses_a_character(script) -> None:
    scanned = scan(script, known=["x"])
    if not scanned.used:
        assert scanned.text == script
