"""The page's style sheet."""

CSS = """
:root{color-scheme:light dark;--paper:#fbfaf7;--card:#fff;--ink:#1f2530;--soft:#5d6675;
--faint:#e4e2db;--new:#0f6f6c;--old:#8a8f9c;--plain:#3c5a8a;--lost:#a8472b;--wash:#eef5f4}
@media (prefers-color-scheme:dark){:root{--paper:#14171c;--card:#1b1f26;--ink:#e6e8ec;
--soft:#9aa3b2;--faint:#2c323c;--new:#5ecac2;--old:#7d8594;--plain:#8fb1e8;--lost:#e08b6d;
--wash:#182526}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif}
main{max-width:54rem;margin:0 auto;padding:3rem 1.25rem 5rem}
h1{font-size:1.9rem;line-height:1.2;letter-spacing:-.02em;margin:.2rem 0 .6rem;font-weight:650;
text-wrap:balance}
h2{font-size:1.2rem;letter-spacing:-.01em;margin:3.2rem 0 .4rem;font-weight:650}
h3{font-size:.95rem;margin:1.8rem 0 .3rem;font-weight:600}
p{margin:.4rem 0;max-width:42rem;text-wrap:pretty}
.over{color:var(--soft);font-size:.85rem;letter-spacing:.02em}
.lead{font-size:1.12rem}
.note,.caveat{color:var(--soft);font-size:.88rem}
.verdict{border-left:4px solid var(--plain);background:var(--card);padding:1rem 1.2rem;
margin:1.4rem 0;border-radius:0 .5rem .5rem 0;overflow-wrap:anywhere}
.verdict p{margin:.15rem 0}
.verdict.promoted{border-color:var(--new);background:var(--wash)}
.verdict.rejected,.verdict.failed{border-color:var(--lost)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem;margin:1rem 0;
font-size:.92rem}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
code{font:.86em/1.4 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
.scroll{overflow-x:auto;margin:.8rem 0 .4rem}
table{border-collapse:collapse;width:100%;font-size:.89rem;font-variant-numeric:tabular-nums}
th{text-align:left;font-weight:500;color:var(--soft);font-size:.8rem;vertical-align:bottom}
th,td{padding:.42rem .9rem .42rem 0;border-bottom:1px solid var(--faint)}
td{vertical-align:top}th:last-child,td:last-child{padding-right:0}
.num{text-align:right;white-space:nowrap}.wide{min-width:13rem}
td:first-child{white-space:nowrap}
.cell{display:flex;flex-wrap:wrap;gap:0 .9rem;align-items:center}
tr.chosen td{background:var(--wash)}
table.short{width:auto;min-width:18rem}
.unscored{color:var(--soft);font-style:italic}
.pill{display:inline-block;padding:.02rem .5rem;border-radius:1rem;background:var(--faint);
font-size:.78rem;white-space:nowrap;font-weight:500}
.pill.new{background:var(--new);color:var(--paper)}.pill.lost{background:var(--lost);
color:var(--paper)}
figure{margin:1.2rem 0 .6rem}
figcaption{font-size:.88rem;color:var(--soft);margin-bottom:.6rem}
svg{display:block;overflow:visible}
.whiskers{display:grid;grid-template-columns:16.5rem minmax(6rem,1fr) 13.5rem;
gap:0 1.1rem;align-items:center;font-size:.92rem;font-variant-numeric:tabular-nums}
.whisker-row{display:contents}.whiskers .row{width:100%;height:2rem}
.told{color:var(--soft);font-size:.86rem}
.axis{grid-column:2;position:relative;height:1.5rem;font-size:.75rem;color:var(--soft)}
.axis span{position:absolute;transform:translateX(-50%);top:.15rem;white-space:nowrap}
.bar{width:7.5rem;height:1.3rem;padding:0 5px}
line.ground{stroke:var(--faint);stroke-width:1}
line.zero{stroke:var(--soft);stroke-width:1;stroke-dasharray:2 3;opacity:.6}
line.whisker{stroke-width:3;stroke-linecap:round;opacity:.55}
.whisker.new{stroke:var(--new)}.dot.new{fill:var(--new)}
.whisker.old{stroke:var(--old)}.dot.old{fill:var(--old)}
.whisker.plain{stroke:var(--plain)}.dot.plain{fill:var(--plain)}
.whisker.lost{stroke:var(--lost)}.dot.lost{fill:var(--lost)}
.curve{display:grid;grid-template-columns:max-content 1fr;gap:.4rem .7rem;font-size:.75rem;
color:var(--soft);font-variant-numeric:tabular-nums}
.curve .plot{width:100%;height:12rem}
.up,.across{display:flex;justify-content:space-between}
.up{flex-direction:column;text-align:right}
.line{fill:none;stroke:var(--new);stroke-width:2.5;stroke-linejoin:round}
.end{fill:var(--new);stroke:var(--paper);stroke-width:2}
.families{display:flex;flex-wrap:wrap;gap:.3rem;padding:0;margin:.6rem 0;list-style:none}
.families li{background:var(--faint);border-radius:1rem;padding:.05rem .6rem;font-size:.8rem}
details{margin:.5rem 0}summary{cursor:pointer;color:var(--soft);font-size:.88rem}
footer{margin-top:4rem;padding-top:1rem;border-top:1px solid var(--faint);color:var(--soft);
font-size:.82rem;overflow-wrap:anywhere}
@media (max-width:40rem){main{padding:1.6rem 1rem 3rem}h1{font-size:1.5rem}
h2{margin-top:2.4rem}
.whiskers{display:block}.whisker-row{display:flex;flex-wrap:wrap;justify-content:space-between;
gap:0 .6rem;margin-bottom:.5rem}
.whiskers .row{order:1;flex:1 0 100%;height:1.5rem}.axis{margin:0}
.axis span:first-child{transform:none}.axis span:last-child{transform:translateX(-100%)}
dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.5rem}.curve .plot{height:9rem}}
@media print{body{background:#fff}details{display:block}}
"""
