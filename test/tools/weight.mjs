#!/usr/bin/env node
// Weight of a tree, by room: node weight.mjs [root=.] [--json] [--types] [--long]
// Parsers: the tree's own typescript, python3's ast and tokenize. A code line carries at least one token that is no comment
// and no docstring. Tokens do not depend on how lines are broken. "Types": exported interfaces, types, classes, enums
// (TS; a name exported twice counts once per file that declares it), public top-level classes (Python, beside it). "Named":
// all of them at the top of a file, exported or not. "Pass on": members that only call or read a member of a field
// (`return this.#x.y(...)`); "copies": constructor lines `this.#x = x`; imports: their lines. All three TS only.
// Function and file lengths count every line, comments too. Data: lines of .json and .css in the same rooms.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
const args = process.argv.slice(2),
  flags = new Set(args.filter((a) => a.startsWith('--')));
const root = resolve(args.find((a) => !a.startsWith('--')) ?? '.');
const ts = createRequire(join(root, 'package.json'))('typescript'),
  K = ts.SyntaxKind;
const tracked = execFileSync(
  'git',
  [
    '-C',
    root,
    'ls-files',
    '-co',
    '--exclude-standard',
    '--',
    'supervisor',
    'worker',
    'protocol',
    '*.ts',
    '*.cts',
  ],
  { encoding: 'utf8', maxBuffer: 1 << 26 },
).split('\n');
const files = tracked.filter(
  (f) =>
    /^(supervisor|worker|protocol|[^/]+$)/.test(f) &&
    /\.([cm]?tsx?|py|json|css)$/.test(f) &&
    !/(^|\/)tsconfig[^/]*\.json$/.test(f),
);
const PY = `
import ast, io, json, sys, tokenize as T
out = {}
for p in json.load(sys.stdin):
    s = open(p, encoding='utf8').read(); tree = ast.parse(s); doc = set(); fns = []
    for n in ast.walk(tree):
        b = getattr(n, 'body', None)
        if isinstance(n, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and b and isinstance(b[0], ast.Expr) and isinstance(b[0].value, ast.Constant) and isinstance(b[0].value.value, str):
            doc.add((b[0].lineno, b[0].col_offset))
        if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)): fns.append([n.name, n.end_lineno - n.lineno + 1])
    lines, tokens = set(), 0
    skip = (T.COMMENT, T.NL, T.NEWLINE, T.INDENT, T.DEDENT, T.ENCODING, T.ENDMARKER)
    for t in T.generate_tokens(io.StringIO(s).readline):
        if t.type in skip or (t.type == T.STRING and t.start in doc): continue
        tokens += 1; lines.update(range(t.start[0], t.end[0] + 1))
    out[p] = dict(code=len(lines), tokens=tokens, all=s.count('\\n'), types=[n.name for n in tree.body if isinstance(n, ast.ClassDef) and not n.name.startswith('_')], fns=fns)
json.dump(out, sys.stdout)`;
function weighTs(path) {
  const text = readFileSync(path, 'utf8'),
    src = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const lines = new Set(),
    fns = [],
    types = new Set(),
    local = new Set();
  let tokens = 0,
    passOn = 0,
    copies = 0,
    imports = 0;
  const lineOf = (pos) => src.getLineAndCharacterOfPosition(pos).line;
  const ofField = (e) =>
    ts.isPropertyAccessExpression(e)
      ? e.expression.kind === K.ThisKeyword
        ? 1
        : ofField(e.expression) && ofField(e.expression) + 1
      : 0;
  const onlyPasses = (e) =>
    e !== undefined &&
    (ts.isCallExpression(e)
      ? ofField(e.expression) === 2 && e.arguments.every((a) => ts.isIdentifier(a) || ts.isSpreadElement(a))
      : ofField(e) === 2);
  const visit = (node) => {
    if (
      (ts.isMethodDeclaration(node) || ts.isGetAccessor(node)) &&
      node.body?.statements.length === 1 &&
      onlyPasses(node.body.statements[0].expression)
    )
      passOn += 1;
    if (ts.isConstructorDeclaration(node))
      for (const s of node.body?.statements ?? [])
        if (/^this\.#?(\w+) = \1;$/.test(s.getText(src))) copies += 1;
    if (ts.isImportDeclaration(node)) imports += lineOf(node.end) - lineOf(node.getStart(src)) + 1;
    if (node.kind >= K.FirstJSDocNode && node.kind <= K.LastJSDocNode) return;
    if (ts.isFunctionLike(node) && node.body)
      fns.push([node.name?.getText(src) ?? '(anonymous)', lineOf(node.end) - lineOf(node.getStart(src)) + 1]);
    const kids = node.getChildren(src);
    if (kids.length > 0) return kids.forEach(visit);
    if (node.kind === K.EndOfFileToken || node.getWidth(src) === 0) return;
    tokens += 1;
    for (let l = lineOf(node.getStart(src)); l <= lineOf(node.end); l += 1) lines.add(l);
  };
  visit(src);
  for (const s of src.statements) {
    if (!(
      ts.isInterfaceDeclaration(s) ||
      ts.isTypeAliasDeclaration(s) ||
      ts.isClassDeclaration(s) ||
      ts.isEnumDeclaration(s)
    ))
      continue;
    (s.modifiers?.some((m) => m.kind === K.ExportKeyword) ? types : local).add(s.name?.text ?? 'default');
  }
  for (const s of src.statements)
    if (
      ts.isExportDeclaration(s) &&
      !s.moduleSpecifier &&
      s.exportClause &&
      ts.isNamedExports(s.exportClause)
    )
      for (const e of s.exportClause.elements) {
        const n = (e.propertyName ?? e.name).text;
        if (local.has(n)) types.add(n);
      }
  const blank = text.split('\n');
  for (const l of lines) if (blank[l]?.trim() === '') lines.delete(l); // inside template texts
  return {
    code: lines.size,
    tokens,
    all: text.split('\n').length - 1,
    types: [...types],
    named: new Set([...types, ...local]).size,
    passOn,
    copies,
    imports,
    fns,
  };
}
function roomOf(f) {
  const p = f.split('/');
  if (p.length === 1) return '(root)';
  if (p[0] === 'supervisor')
    return p[1] === 'http' && p.length > 3 ? `http/${p[2]}` : p.length > 2 ? p[1] : 'supervisor';
  if (p[0] === 'worker' && p[1] === 'python')
    return p[2] === 'banana_worker' && p.length > 4 ? `python/${p[3]}` : 'python';
  return p[0] === 'worker' && p.length > 2 ? `worker/${p[1]}` : p[0];
}
const partOf = (room) =>
  room.startsWith('python')
    ? 'python'
    : room.startsWith('worker')
      ? 'worker'
      : room === 'protocol' || room === '(root)'
        ? 'protocol and root'
        : 'front';
const py = files.filter((f) => f.endsWith('.py')).map((f) => join(root, f));
const pyWeights = JSON.parse(
  execFileSync('python3', ['-c', PY], { input: JSON.stringify(py), encoding: 'utf8', maxBuffer: 1 << 26 }),
);
const rows = new Map(),
  long = [],
  tall = [],
  names = [];
const empty = () => ({
  files: 0,
  code: 0,
  tokens: 0,
  types: 0,
  named: 0,
  pyClasses: 0,
  passOn: 0,
  copies: 0,
  imports: 0,
  longest: 0,
  over60: 0,
  over400: 0,
  under20: 0,
  data: 0,
});
const add = (room, w) => {
  if (!rows.has(room)) rows.set(room, empty());
  const r = rows.get(room);
  for (const k of Object.keys(w)) r[k] = k === 'longest' ? Math.max(r[k], w[k]) : r[k] + w[k];
};
for (const f of files) {
  const room = roomOf(f);
  if (/\.(json|css)$/.test(f)) {
    add(room, { data: readFileSync(join(root, f), 'utf8').split('\n').length - 1 });
    continue;
  }
  const isPy = f.endsWith('.py'),
    w = isPy ? pyWeights[join(root, f)] : weighTs(join(root, f));
  const over = w.fns.filter(([, n]) => n > 60);
  for (const [n, l] of over) long.push(`${l}  ${f}  ${n}`);
  if (w.all > 400) tall.push(`${w.all}  ${f}`);
  for (const n of w.types) names.push(`${n}\t${f}`);
  add(room, {
    files: 1,
    code: w.code,
    tokens: w.tokens,
    types: isPy ? 0 : w.types.length,
    named: w.named ?? 0,
    pyClasses: isPy ? w.types.length : 0,
    passOn: w.passOn ?? 0,
    copies: w.copies ?? 0,
    imports: w.imports ?? 0,
    longest: Math.max(0, ...w.fns.map(([, n]) => n)),
    over60: over.length,
    over400: w.all > 400 ? 1 : 0,
    under20: w.code <= 20 ? 1 : 0,
  });
}
const parts = new Map(),
  total = empty();
for (const [room, r] of rows) {
  const part = partOf(room);
  if (!parts.has(part)) parts.set(part, empty());
  for (const t of [parts.get(part), total])
    for (const k of Object.keys(r)) t[k] = k === 'longest' ? Math.max(t[k], r[k]) : t[k] + r[k];
}
if (flags.has('--json'))
  console.log(
    JSON.stringify({ rooms: Object.fromEntries(rows), parts: Object.fromEntries(parts), total, long, tall }),
  );
else if (flags.has('--types')) console.log(names.sort().join('\n'));
else {
  const cols = [
    'files',
    'code',
    'tokens',
    'types',
    'named',
    'pyClasses',
    'passOn',
    'copies',
    'imports',
    'longest',
    'over60',
    'over400',
    'under20',
    'data',
  ];
  const head = [
    'files',
    'code',
    'tokens',
    'types',
    'named',
    'py cls',
    'pass on',
    'copies',
    'imports',
    'longest',
    'fn>60',
    'file>400',
    '<=20',
    'data',
  ];
  const line = (n, r) =>
    n.padEnd(22) + cols.map((c, i) => String(r[c]).padStart(Math.max(7, head[i].length + 2))).join('');
  console.log('room'.padEnd(22) + head.map((h) => h.padStart(Math.max(7, h.length + 2))).join(''));
  for (const [n, r] of [...rows].sort(
    (a, b) => partOf(a[0]).localeCompare(partOf(b[0])) || b[1].code - a[1].code,
  ))
    console.log(line(n, r));
  console.log();
  for (const [n, r] of parts) console.log(line(n, r));
  console.log(line('whole', total));
  if (flags.has('--long'))
    console.log(
      '\n' +
        long.sort((a, b) => parseInt(b) - parseInt(a)).join('\n') +
        '\n\n' +
        tall.sort((a, b) => parseInt(b) - parseInt(a)).join('\n'),
    );
}
