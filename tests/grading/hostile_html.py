"""HTML that runs a script, loads from a different host, or covers or leaves the page, if it is shown unchanged.

Scripts call ``ran()``; the different host is ``elsewhere.example``.
"""

from base64 import b64encode

HOST = "https://elsewhere.example"


def data(kind: str, text: str) -> str:
    return f"data:{kind};base64,{b64encode(text.encode()).decode()}"


SVG_THAT_RUNS = "<svg xmlns='http://www.w3.org/2000/svg' onload='parent.ran()'><script>parent.ran()</script></svg>"
FOREIGN = "<math><mtext><table><mglyph><style>"

SCRIPTS = {
    "plain": "<script>ran()</script>",
    "case and space": "<ScRiPt\n\t/x>ran()</ScRiPt\t>",
    "unclosed": "<script>ran()//",
    "nested": "<scr<script></script>ipt>ran()</script><script>ran()</script>",
    "NUL bytes": "<scr\0ipt>ran()</scr\0ipt><img\0 src=x onerror\0=ran()><img src=x onerror=ran()>",
    "half a surrogate pair": "\ud800<script>ran()</script>\udfff",
    "module": "<script type=module>parent.ran ? ran() : 0</script>",
    "data address": f"<script src='{data('text/javascript', 'ran()')}'></script>",
    "in svg": "<svg><script>ran()</script></svg>",
    "entities in svg": "<svg><script>&#114;an()</script></svg>",
    "after a comment": "<!--><script>ran()</script>-->",
    "after an odd comment": "<!--- --!><script>ran()</script> -->",
    "after a declaration": "<!x '><script>ran()</script>",
    "after instructions": "<?xml x='?><script>ran()</script>",
    "after CDATA": "<![CDATA[><script>ran()</script>]]>",
}
HANDLERS = {
    "broken picture": "<img src=x onerror=ran()>",
    "slashes for spaces": "<img/src=x/onerror=ran()>",
    "backquotes": "<img src=`x` onerror=`ran()`><img src=x onerror=ran()>",
    "form feed": "<img\fsrc=x\fonerror=ran()>",
    "svg": "<svg onload=ran()>",
    "details": "<details open ontoggle=ran()>x</details>",
    "focus": "<input autofocus onfocus=ran()>",
    "media": "<video><source onerror=ran()></video>",
    "audio": "<audio src=x onerror=ran()>",
    "click": "<b onclick=ran()>x</b>",
    "marquee": "<marquee onstart=ran()>x</marquee>",
    "style": "<style onload=ran()></style>",
    "animation": "<style>@keyframes x{}</style><b style='animation-name:x' onanimationstart=ran()>x</b>",
    "unclosed": "<p><img src=x onerror=ran() ",
    "body": "<body onload=ran()>",
    "frame": "<iframe src='about:blank' onload=ran()></iframe>",
}
ADDRESSES = {
    "script": "<a href='javascript:ran()'>x</a>",
    "entities": "<a href='&#106;&#x61;vascript&colon;ran()'>x</a>",
    "tab and newline": "<a href='java\tscr\nipt:ran()'>x</a>",
    "entities for tab and newline": "<a href='java&Tab;scr&NewLine;ipt:ran()'>x</a>",
    "control characters": "<a href='\x01\x1f javascript:ran()'>x</a>",
    "case": "<a href=JaVaScRiPt:ran()>x</a>",
    "in svg": "<svg><a xlink:href='javascript:ran()'><text y=20>x</text></a></svg>",
    "in MathML": "<math><mrow href='javascript:ran()'>x</mrow></math><math><a href='javascript:ran()'>x</a></math>",
    "of a form": "<form action='javascript:ran()'><button>x</button></form>",
    "of a button": "<form><button formaction='javascript:ran()'>x</button></form>",
    "of an area": "<map name=m><area href='javascript:ran()' shape=default></map><img usemap=#m src=x>",
    "of a frame": "<iframe src='javascript:parent.ran()'></iframe>",
    "of an object": "<object data='javascript:parent.ran()'></object><embed src='javascript:parent.ran()'>",
    "a page as data": f"<iframe src='{data('text/html', '<script>parent.ran()</script>')}'></iframe>",
    "a drawing as data": f"<object data='{data('image/svg+xml', SVG_THAT_RUNS)}'></object>",
    "a page in an attribute": "<iframe srcdoc='<script>parent.ran()</script>'></iframe>",
    "a page in an attribute, in entities": "<iframe srcdoc='&lt;img src=x onerror=parent.ran()&gt;'></iframe>",
    "base": "<base href='javascript:ran()//'><a href='#'>x</a>",
}
DRAWINGS = {
    "set": "<svg><a><set attributeName=href to='javascript:ran()'/><text y=20>x</text></a></svg>",
    "animate": "<svg><animate onbegin=ran() attributeName=x dur=1s></svg>",
    "animated address": "<svg><a><animate attributeName=href values='javascript:ran()'/><text y=20>x</text></a></svg>",
    "foreign object": "<svg><foreignObject><img src=x onerror=ran()></foreignObject></svg>",
    "use": f"<svg><use href='{data('image/svg+xml', SVG_THAT_RUNS)}#x'/></svg><svg onload=ran()></svg>",
    "title": "<svg><title><style><img title='</style><img src=x onerror=ran()>'>",
    "desc": "<svg><desc><img src=x onerror=ran()></desc></svg>",
}
# HTML whose meaning changes when it is parsed, serialised and parsed again.
MUTATIONS = {
    "noscript": '<noscript><p title="</noscript><img src=x onerror=ran()>">',
    "mglyph": f"{FOREIGN}<!--</style><img title='--&gt;&lt;img src=1 onerror=ran()&gt;'>",
    "mglyph, closed": f"{FOREIGN}</style><img src=x onerror=ran()>",
    "malignmark": "<math><mtext><malignmark><style><!--</style><img src=x onerror=ran()>-->",
    "annotation": "<math><annotation-xml encoding='text/html'><style><img src=x onerror=ran()></style></math>",
    "form in form": "<form><math><mtext></form><form><mglyph><style></math><img src onerror=ran()>",
    "p in svg": "<svg></p><style><a id='</style><img src=1 onerror=ran()>'>",
    "table in table": "<table><td><svg><desc><table><style><img src=x onerror=ran()></style>",
    "select": "<select><style></select><img src=x onerror=ran()></style>",
    "textarea": "<textarea><img title='</textarea><img src=x onerror=ran()>'>",
    "title": "<title><a title='</title><img src=x onerror=ran()>'>",
    "xmp": "<xmp><p title='</xmp><img src=x onerror=ran()>'>",
    "plain text": "<svg><plaintext><img src=x onerror=ran()>",
    "noembed": "<noembed><img title='</noembed><img src=x onerror=ran()>'>",
    "frame": "<iframe><p title='</iframe><img src=x onerror=ran()>'>",
    "template": "<template><img title='</template><img src=x onerror=ran()>'></template>",
    "attribute": "<b title='&quot;&gt;&lt;img src=x onerror=ran()&gt;'>x</b><img src=x onerror=ran()>",
    "lone quote": "<b title='\"><img src=x onerror=ran()>'>x</b><img src=x onerror=ran()>",
    "backquote": "<b title='`` onmouseover=ran()'>x</b><img src=x onerror=ran()>",
}
FETCHES = {
    "picture": f"<img src={HOST}/a.png>",
    "without a scheme": "<img src=//elsewhere.example/a.png>",
    "backslashes": "<img src='https:\\\\elsewhere.example/a.png'>",
    "set of pictures": f"<img srcset='{HOST}/a.png 1x'>",
    "style sheet": f"<link rel=stylesheet href={HOST}/a.css>",
    "import": f"<style>@import '{HOST}/a.css';</style>",
    "background": f"<p style='background:url({HOST}/a.png)'>x</p>",
    "background, escaped": f"<p style='b\\61 ckground-image:u\\72l({HOST}/a.png)'>x</p>",
    "border": f"<p style='border:9px solid;border-image:url({HOST}/a.png) 9'>x</p>",
    "cursor and list": f"<ul style='list-style:url({HOST}/a.png)'><li>x</ul>",
    "content": f"<p style='content:url({HOST}/a.png)'>x</p>",
    "old attribute": f"<table background={HOST}/a.png><tr><td>x</table>",
    "refresh": f"<meta http-equiv=refresh content='0;url={HOST}'>",
    "frame": f"<iframe src={HOST}></iframe>",
    "poster": f"<video poster={HOST}/a.png></video>",
    "svg picture": f"<svg><image href={HOST}/a.png /></svg>",
    "filter": f"<svg><filter id=f><feImage href={HOST}/a.png /></filter><rect width=9 height=9 filter=url(#f) /></svg>",
    "base": f"<base href={HOST}><img src=a.png>",
    "dangling markup": f"<img src='{HOST}/?",
    "preload": f"<link rel=preload as=image href={HOST}/a.png>",
    "ping": f"<a href='#' ping={HOST}>x</a>",
    "form": f"<form action={HOST}><button>x</button></form>",
}
COVERS = {
    "fixed": "<div style='position:fixed;inset:0;z-index:9'>x</div>",
    "escaped": "<div style='p\\6fsition:f\\69xed;top:0'>x</div>",
    "comments": "<div style='position/**/:/**/fixed;top:0'>x</div>",
    "important": "<div style='color:red;;position:sticky!important'>x</div>",
    "style sheet": "<style>*{position:fixed}</style>x",
    "expression": "<p style='width:expression(ran());-moz-binding:url(x);behavior:url(x);position:absolute'>x</p>",
    "nested rule": "<p style='color:red;&{position:fixed}'>x</p><p style='position:fixed'>x</p>",
    "dialog": "<dialog open style='position:fixed'>x</dialog>",
    "popover": "<div popover id=p style='position:fixed'>x</div><button popovertarget=p>x</button>",
}
GROUPS = {
    "script": SCRIPTS,
    "handler": HANDLERS,
    "address": ADDRESSES,
    "drawing": DRAWINGS,
    "mutation": MUTATIONS,
    "fetch": FETCHES,
    "cover": COVERS,
}
