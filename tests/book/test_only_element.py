"""An article that is emptied of everything but one element keeps that element, its ancestors, and nothing else."""

from only_element import only_element

PAGE = """<head><title>Masks</title></head><body><h1>The book</h1><article class="bd">
<section id="a"><h2>Before</h2><p>One<br>two <img src="x.png"></p>
<div class="cell"><svg><path/></svg><my-drawing><script>[1]</script></my-drawing>After</div></section></article>
<nav id="pst-page-toc-nav"><a href="#a">Before</a></nav><footer>The end</footer></body>"""
EMPTIED = """<head><title>Masks</title></head><body><h1>The book</h1><article class="bd">\
<section id="a"><div class="cell"><my-drawing><script>[1]</script></my-drawing></div></section></article>
<footer>The end</footer></body>"""


def test_everything_in_the_article_but_the_element_and_its_ancestors_is_left_out():
    assert only_element(PAGE, "my-drawing") == EMPTIED
