/**
 * Prints docs/api.md from the docstrings of the public names: `npm run api` writes it. test/house/api-page.test.ts keeps it
 * current, and compiles its examples.
 */
import { writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { pathToFileURL } from 'node:url';
import { format, resolveConfig } from 'prettier';
import ts from 'typescript';
import { ROOT } from '../helpers/server.js';

export const API_PAGE = `${ROOT}docs/api.md`;

/** The entries of the package, by the file of their declarations. */
const ENTRIES = {
  index: 'banana-serve',
  potassium: 'banana-serve/potassium',
  mms: 'banana-serve/mms',
  client: 'banana-serve/client',
} as const;

export interface ApiName {
  readonly entry: (typeof ENTRIES)[keyof typeof ENTRIES];
  readonly name: string;
  readonly isDeprecated: boolean;
  readonly isType: boolean;
  /** The docstring without its tags; empty if there is none. */
  readonly text: string;
  readonly example: string;
  readonly declarations: readonly string[];
}

const OPTIONS: ts.CompilerOptions = {
  module: ts.ModuleKind.NodeNext,
  target: ts.ScriptTarget.ES2023,
  lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
  types: ['node'],
  strict: true,
  noEmit: true,
  skipLibCheck: true,
};

const parsed = new Map<string, ts.SourceFile | undefined>();

/** Parses a file once for both programs. `own`: texts of files that are not on the disk. */
function hostWith(own: ReadonlyMap<string, string>): ts.CompilerHost {
  const host = ts.createCompilerHost(OPTIONS);
  const { getSourceFile, fileExists } = host;
  host.fileExists = (path) => own.has(path) || fileExists(path);
  host.getSourceFile = (path, language) => {
    const text = own.get(path);
    if (text !== undefined) return ts.createSourceFile(path, text, language);
    if (!parsed.has(path)) parsed.set(path, getSourceFile(path, language));
    return parsed.get(path);
  };
  return host;
}

/** The public names of the built package, in the order of its entries. */
export function apiNames(): ApiName[] {
  const program = ts.createProgram(
    Object.keys(ENTRIES).map((file) => `${ROOT}dist/${file}.d.ts`),
    OPTIONS,
    hostWith(new Map()),
  );
  const checker = program.getTypeChecker();
  return Object.entries(ENTRIES).flatMap(([file, entry]) => {
    const source = program.getSourceFile(`${ROOT}dist/${file}.d.ts`) as ts.SourceFile;
    const module = checker.getSymbolAtLocation(source) as ts.Symbol;
    return checker.getExportsOfModule(module).map((symbol) => nameOf(checker, entry, symbol));
  });
}

function nameOf(checker: ts.TypeChecker, entry: ApiName['entry'], symbol: ts.Symbol): ApiName {
  const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  const declared = (target.declarations ?? []).filter((node) => ts.getJSDocDeprecatedTag(node) === undefined);
  const docs = declared.flatMap((node) => ts.getJSDocCommentsAndTags(node)).filter(ts.isJSDoc);
  const tags = docs.flatMap(({ tags }) => [...(tags ?? [])]);
  return {
    entry,
    name: symbol.name,
    isDeprecated: (symbol.declarations ?? []).every((node) => ts.getJSDocDeprecatedTag(node) !== undefined),
    isType: (target.flags & ts.SymbolFlags.Value) === 0,
    text: docs.map(({ comment }) => ts.getTextOfJSDocComment(comment) ?? '').join('\n\n'),
    example: tags
      .filter(({ tagName }) => tagName.text === 'example')
      .map(({ comment }) => ts.getTextOfJSDocComment(comment) ?? '')
      .join('\n'),
    declarations: declared.map(declarationText),
  };
}

/** The declaration as an author needs it: without what is private, or known by symbols of our own. */
function declarationText(node: ts.Declaration): string {
  const text = withoutModifiers(node.getText());
  if (!ts.isClassDeclaration(node) && !ts.isInterfaceDeclaration(node)) return text;
  const source = node.getSourceFile().text;
  const head = withoutModifiers(source.slice(node.getStart(), node.members.pos));
  const shown = [...node.members].filter(isShown).map((member) => member.getFullText().trimEnd());
  return `${head}${shown.join('')}\n}`;
}

function withoutModifiers(text: string): string {
  return text.replace(/^export /, '').replace(/^declare /, '');
}

function isShown(member: ts.ClassElement | ts.TypeElement): boolean {
  if (ts.getCombinedModifierFlags(member) & ts.ModifierFlags.Private) return false;
  const name = member.name?.getText() ?? '';
  return !name.startsWith('#') && (!name.startsWith('[') || name.startsWith('[Symbol.'));
}

/** The text of docs/api.md. */
export async function apiPage(names: readonly ApiName[]): Promise<string> {
  const sections = Object.values(ENTRIES).map((entry) => {
    const shown = names.filter((name) => name.entry === entry && !name.isDeprecated);
    const ordered = [...shown.filter(({ isType }) => !isType), ...shown.filter(({ isType }) => isType)];
    return [`## ${entry}`, ...ordered.map(chapter)].join('\n\n');
  });
  const text = [HEAD, ...sections].join('\n\n');
  return format(text, { ...(await resolveConfig(API_PAGE)), filepath: API_PAGE });
}

const HEAD = `# The names to import

Every name of \`banana-serve\` and of its entries \`/potassium\`, \`/mms\` and \`/client\`, with an example. The examples import what they use; \`app\` is a Potassium app. \`npm run api\` prints this page from the docstrings.`;

function chapter({ name, text, example, declarations }: ApiName): string {
  const paragraphs = text.replace(/([^\n])\n(?![\n-])/g, '$1 ');
  return [`### ${name}`, paragraphs, code(example), code(declarations.join('\n'))].join('\n\n');
}

function code(text: string): string {
  return `\`\`\`ts\n${text}\n\`\`\``;
}

/** Compiles the examples, each as a file of its own. Returns the errors, with the name whose example has them. */
export function exampleErrors(names: readonly ApiName[]): string[] {
  const current = names.filter(({ isDeprecated }) => !isDeprecated);
  const texts = new Map(
    current.map((one) => [`${ROOT}${one.entry.replace('/', '-')} ${one.name}.ts`, importing(one, current)]),
  );
  const program = ts.createProgram([...texts.keys()], OPTIONS, hostWith(texts));
  return [...texts.keys()].flatMap((path) => {
    const source = program.getSourceFile(path);
    const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
    return found.map(
      ({ messageText }) => `${basename(path)}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
    );
  });
}

/** The example behind imports of the names in it, from its own entry where that has them. */
function importing({ entry, example }: ApiName, names: readonly ApiName[]): string {
  const own = names.filter((one) => one.entry === entry);
  const others = names.filter(
    (one) => one.entry === ENTRIES.index && !own.some(({ name }) => name === one.name),
  );
  const used = [...own, ...others].filter(
    ({ name }) =>
      new RegExp(`(?<![.\\w'/-])${name}(?![\\w'-])`).test(example) &&
      !new RegExp(`import .*\\b${name}\\b|(const|let|class|function) ${name}\\b`).test(example),
  );
  const lines = used.map((one) => `import ${one.isType ? 'type ' : ''}{ ${one.name} } from '${one.entry}';`);
  const app =
    /(?<!const )\bapp\./.test(example) && !example.includes('const app')
      ? `declare const app: import('banana-serve/potassium').Potassium;`
      : '';
  return [...lines, app, example, 'export {};'].join('\n');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  writeFileSync(API_PAGE, await apiPage(apiNames()));
