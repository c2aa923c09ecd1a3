"""How the page looks: light, dark, on paper and on a phone. The contrast of text is at least 4.5 to 1 everywhere."""

CLASS_REPORT_CSS = """
:root { color-scheme: light dark; --page: #fff; --card: #f5f7fa; --text: #1b1f23; --quiet: #57606a; --line: #d3dae2;
  --link: #0a58ca; --bar: #3f72b8; --band: #e3edf9; --look: #9a4500; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14181d; --card: #1d232a; --text: #e3e8ee; --quiet: #a6b0bb; --line: #3a434d; --link: #7cb3ff;
    --bar: #6b9fe0; --band: #22303f; --look: #ffb066; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 72rem; background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { margin: 0; font-size: 1.9rem; line-height: 1.2; }
h2 { margin: 2.8rem 0 .6rem; padding-bottom: .25rem; border-bottom: 2px solid var(--line); font-size: 1.3rem; }
h3 { margin: 0 0 .4rem; font-size: 1.05rem; }
p { margin: .4rem 0 .8rem; max-width: 46rem; }
a { color: var(--link); }
ul { margin: 0; padding-left: 1.1rem; }
.quiet, caption, figcaption { color: var(--quiet); }
.look { color: var(--look); font-weight: 600; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .8rem; margin: 1.4rem 0 0; }
.figures div { padding: .8rem 1rem; background: var(--card); border: 1px solid var(--line); border-radius: .6rem; }
.figures dt { color: var(--quiet); font-size: .875rem; }
.figures dd { margin: 0; font-size: 1.75rem; font-weight: 650; line-height: 1.25; font-variant-numeric: tabular-nums; }
.figures dd small { display: block; color: var(--quiet); font-size: .875rem; font-weight: 400; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem 2.5rem;
  margin-top: 2.4rem; }
.plots section > h2 { margin-top: 0; }
figure { margin: 0; }
svg { display: block; width: 100%; max-width: 31rem; height: auto; font: 13px system-ui, sans-serif; }
svg text { fill: var(--text); }
svg .quiet { fill: var(--quiet); }
svg .count { paint-order: stroke; stroke: var(--page); stroke-width: 4; }
svg .bar { fill: var(--bar); }
svg .band { fill: var(--band); }
svg .axis { stroke: var(--line); }
svg .mark { stroke: var(--text); stroke-dasharray: 5 4; }
svg .leader { stroke: var(--quiet); }
svg .question { fill: var(--page); stroke: var(--bar); stroke-width: 2; }
svg .question.look { stroke: var(--look); }
svg .key { font-weight: 600; font-size: 12px; }
.bars { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 0 2.5rem;
  margin: 0; padding: 0; list-style: none; }
.bars > li { padding: .7rem 0; border-bottom: 1px solid var(--line); }
.bars strong { font-weight: 600; }
.track { display: flex; align-items: center; gap: .7rem; margin: .15rem 0; }
.track svg { flex: 1 1 auto; max-width: 30rem; height: .8rem; }
.track .space { fill: var(--card); }
.track span { flex: none; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
.scroll:focus-visible, summary:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; overflow-wrap: normal; }
caption { padding: .2rem 0 .5rem; text-align: left; }
th, td { padding: .4rem .8rem .4rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { border-bottom-width: 2px; font-weight: 600; vertical-align: bottom; }
tbody th { font-weight: 500; }
tbody th:not(.number), td:not(.number) { min-width: 7.5rem; }
td:last-child:not(.number) { min-width: 20rem; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
details { margin: .4rem 0; }
summary { padding: .2rem 0; cursor: pointer; }
.pair { margin: .8rem 0; padding: .6rem 1rem; border: 1px solid var(--line); border-radius: .6rem; }
.passage { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: .3rem 1rem;
  margin: .8rem 0; }
.passage figure { min-width: 0; }
pre { margin: .2rem 0; padding: .6rem .8rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .4rem; font: .82rem/1.45 ui-monospace, monospace; white-space: pre-wrap; }
@media print {
  :root { color-scheme: light; --page: #fff; --card: #fff; --text: #000; --quiet: #444; --line: #999; --link: #000;
    --bar: #555; --band: #e8e8e8; --look: #000; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  details::details-content { content-visibility: visible; block-size: auto; }
  .scroll { overflow: visible; }
  figure, .figures div, .bars > li, tr { break-inside: avoid; }
  h2 { break-after: avoid; }
}
"""
