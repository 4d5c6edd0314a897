/** A file of Java's properties: its keys and values, and the lines on which they stand. */
import { isUtf8 } from 'node:buffer';
import { parseLines, type Node, type Pair } from 'dot-properties';

export interface Property {
  readonly key: string;
  /** Without spaces around it. */
  readonly value: string;
  /** Where its key stands, counted from 1. */
  readonly line: number;
}

/** In the order of the file; a key may come again. Takes UTF-8, and else Latin-1, as Java wrote these files for long. */
export function readProperties(bytes: Buffer): Property[] {
  const text = (isUtf8(bytes) ? bytes.toString('utf8') : bytes.toString('latin1')).replace(/^\ufeff/, '');
  let line = 1;
  let at = 0;
  return parseLines(text, true)
    .filter(isPair)
    .map(({ key, value, range: [start] }) => {
      line += text.slice(at, start).split(/\r\n|\r|\n/).length - 1;
      at = start;
      return { key, value: value.trim(), line };
    });
}

function isPair(node: Required<Node>): node is Required<Pair> {
  return node.type === 'PAIR';
}
