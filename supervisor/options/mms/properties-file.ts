/** Reads a Java properties file: keys, values and their line numbers. */
import { isUtf8 } from 'node:buffer';
import { parseLines, type Node, type Pair } from 'dot-properties';

export interface Property {
  readonly key: string;
  /** Trimmed. */
  readonly value: string;
  /** Line of the key, from 1. */
  readonly line: number;
}

/** Returns entries in file order; keys may repeat. Reads UTF-8, else Latin-1, the old encoding of Java for these files. */
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
