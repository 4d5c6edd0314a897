/** Pages under docs/ that are held to the code: tables read from them, and sections printed into them. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { ROOT } from './server.js';

/** The rows of the tables below `## heading` whose header starts with `first`, by column; code marks removed. */
export function tableRows(page: string, heading: string, first: string): Record<string, string>[] {
  const text = readFileSync(`${ROOT}docs/${page}`, 'utf8');
  const section = text.split(/^## /m).find((part) => part.startsWith(`${heading}\n`));
  assert.ok(section !== undefined, `${page} has a section "${heading}"`);
  const tables = section.split('\n\n').filter((block) => block.startsWith('|'));
  const rows = tables.flatMap((block) => {
    const [header = [], , ...lines] = block.trim().split('\n').map(cellsOf);
    if (header[0] !== first) return [];
    return lines.map((cells) => Object.fromEntries(header.map((name, i) => [name, cells[i] ?? ''])));
  });
  assert.ok(rows.length > 0, `${page}, "${heading}", has a table of "${first}"`);
  return rows;
}

function cellsOf(line: string): string[] {
  const cells = line.split('|').slice(1, -1);
  return cells.map((cell) => cell.trim().replaceAll('`', ''));
}

/** Tests what stands between `<!-- name -->` and `<!-- /name -->`; with UPDATE_DOCS=1 writes it anew instead. */
export function holdsSection(page: string, name: string, print: () => string): void {
  test(`docs/${page}: ${name} is what the code prints`, () => {
    const path = `${ROOT}docs/${page}`;
    const text = readFileSync(path, 'utf8');
    const [open, close] = [`<!-- ${name} -->\n`, `<!-- /${name} -->`];
    const start = text.indexOf(open) + open.length;
    const end = text.indexOf(close);
    assert.ok(start >= open.length && end >= start, `the page has a section ${name}`);
    if (process.env['UPDATE_DOCS'] === '1')
      writeFileSync(path, text.slice(0, start) + print() + text.slice(end));
    else assert.equal(text.slice(start, end), print(), 'run the test with UPDATE_DOCS=1 to write it anew');
  });
}

const PRINT_WIDTH = 110;

/** A table as prettier prints it: its columns are aligned where every line fits into the width of `.prettierrc.json`. */
export function printTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const aligned = alignedLines(header, rows);
  const fits = (aligned[0] as string).length <= PRINT_WIDTH;
  const lines = fits ? aligned : [header, header.map(() => '---'), ...rows].map(tableLine);
  return `\n${lines.map((line) => `${line}\n`).join('')}\n`;
}

function alignedLines(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = header.map((_, i) => Math.max(3, ...[header, ...rows].map((row) => (row[i] ?? '').length)));
  const rule = widths.map((width) => '-'.repeat(width));
  return [header, rule, ...rows].map((row) =>
    tableLine(row.map((cell, i) => cell.padEnd(widths[i] as number))),
  );
}

function tableLine(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}
