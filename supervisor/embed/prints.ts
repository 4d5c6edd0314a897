/** Passes on what the apps of functions print: to a stream with the model's name, to a function line by line, or nowhere. */
import type { Readable, Writable } from 'node:stream';
import { LineSplitter } from '../observe/line-splitter.js';
import type { OutputRelay } from '../observe/output-relay.js';
import type { PrintSource, StreamName } from '../observe/prints.js';

export type Prints = 'ignore' | Writable | ((line: string, stream: StreamName) => void);

export class FunctionPrints implements Pick<OutputRelay, 'attach'> {
  readonly #placeOf: (model: string) => Prints;

  /** `placeOf` returns where the output of the model of this name goes. */
  constructor(placeOf: (model: string) => Prints) {
    this.#placeOf = placeOf;
  }

  attach(stream: Readable, name: StreamName, { label, mark }: PrintSource): void {
    const model = label();
    const place = this.#placeOf(model);
    if (place === 'ignore') return void stream.resume();
    const write =
      typeof place === 'function' ? toFunction(place, name) : toStream(place, `[${model}] `, stream);
    const lines = new LineSplitter(mark, false, (text) => write(text.toString()));
    stream.on('data', (chunk: Buffer) => lines.push(chunk));
    stream.on('error', () => lines.end());
    stream.on('close', () => lines.end());
  }
}

function toFunction(place: Extract<Prints, (...args: never[]) => void>, name: StreamName) {
  return (text: string): void => {
    for (const line of linesOf(text)) place(line, name);
  };
}

/** A place that takes no more makes the app wait; one that has ended takes nothing. */
function toStream(place: Writable, prefix: string, stream: Readable) {
  return (text: string): void => {
    if (!place.writable) return;
    const lines = linesOf(text).map((line) => `${prefix}${line}\n`);
    if (!place.write(lines.join(''))) waitFor(place, stream);
  };
}

/** The outputs that wait for a place. */
const waiting = new WeakMap<Writable, Set<Readable>>();

function waitFor(place: Writable, stream: Readable): void {
  stream.pause();
  const known = waiting.get(place);
  if (known !== undefined) return void known.add(stream);
  const streams = new Set([stream]);
  waiting.set(place, streams);
  const goOn = (): void => {
    for (const event of ['drain', 'close']) place.off(event, goOn);
    waiting.delete(place);
    for (const one of streams) one.resume();
  };
  for (const event of ['drain', 'close']) place.on(event, goOn);
}

function linesOf(text: string): string[] {
  const lines = text.split('\n');
  return (lines.at(-1) === '' ? lines.slice(0, -1) : lines).map((line) => line.replace(/\r$/, ''));
}
