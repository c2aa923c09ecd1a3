"""What is left out of the theme's style sheet is what no page can need."""

import pytest
from trim import used_rules


@pytest.mark.parametrize(
    ("style", "words", "left"),
    [
        (".a{x:1}.b{x:2}", {"a"}, ".a{x:1}"),
        (".a,.b .c,p{x:1}", {"b", "c"}, ".b .c,p{x:1}"),
        ("@media (min-width:9px){.a{x:1}}p{x:2}", set(), "p{x:2}"),
        ("@media (min-width:9px){.a{x:1}.b{x:2}}", {"b"}, "@media (min-width:9px){.b{x:2}}"),
        ("p:not(.a){x:1}", set(), "p:not(.a){x:1}"),
        (".a:is(.b,.c) .d{x:1}", {"a", "d"}, ".a:is(.b,.c) .d{x:1}"),
        (".bs-tip-auto{x:1}.bs-other{x:2}", {"bs-tip", "bs"}, ".bs-tip-auto{x:1}"),
        ("@keyframes turn{0%{x:1}to{x:2}}", set(), "@keyframes turn{0%{x:1}to{x:2}}"),
        ('@font-face{src:url("a.woff")}', set(), '@font-face{src:url("a.woff")}'),
        ("/*! by a.com, b */.a,.b{x:1}", {"b"}, "/*! by a.com, b */.b{x:1}"),
        ("@supports (x:1){@media print{.a{x:1}}}", set(), ""),
    ],
)
def test_rules_stay_whose_classes_occur(style, words, left):
    assert used_rules(style, words) == left
