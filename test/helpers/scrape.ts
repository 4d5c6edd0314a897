/** Parses `GET /metrics`: Prometheus's text format 0.0.4; anything else is refused. */
import assert from 'node:assert/strict';
import { eventually } from './server.js';

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export class Scrape {
  readonly text: string;
  readonly samples: readonly Sample[];
  /** Type of each metric, by its name. */
  readonly types: ReadonlyMap<string, string>;

  constructor(text: string) {
    this.text = text;
    const lines = text.split('\n');
    assert.equal(lines.at(-1), '', 'the last line ends');
    this.types = new Map(lines.flatMap((line) => typeOf(line) ?? []));
    this.samples = lines.filter((line) => line !== '' && !line.startsWith('#')).map(readSample);
    for (const { name } of this.samples) assert.ok(this.familyOf(name) !== null, `${name} has a type`);
    const keys = this.samples.map(({ name, labels }) =>
      JSON.stringify([name, Object.entries(labels).sort()]),
    );
    assert.equal(new Set(keys).size, keys.length, 'no sample is there twice');
  }

  /** The metric that a sample belongs to. */
  familyOf(sample: string): string | null {
    if (this.types.has(sample)) return sample;
    const base = sample.replace(/_(?:bucket|sum|count)$/, '');
    return this.types.get(base) === 'histogram' ? base : null;
  }

  find(name: string, labels: Readonly<Record<string, string>> = {}): Sample[] {
    const isMeant = (sample: Sample): boolean =>
      sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value);
    return this.samples.filter(isMeant);
  }

  /** The sum over all samples with at least these labels; null if there are no such samples. */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number | null {
    const found = this.find(name, labels);
    return found.length === 0 ? null : found.reduce((sum, { value }) => sum + value, 0);
  }
}

/** `at`: such as `http://localhost:8000`, or with a query behind the path. */
export async function scrape(at: string, headers: Record<string, string> = {}): Promise<Scrape> {
  const url = at.includes('/metrics') ? at : `${at}/metrics`;
  const response = await fetch(url, { headers });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  assert.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
  return new Scrape(text);
}

/** Scrapes until what is found satisfies `test`. */
export async function untilScraped(at: string, test: (found: Scrape) => boolean): Promise<Scrape> {
  let last = new Scrape('');
  await eventually(
    async () => test((last = await scrape(at))),
    60_000,
    () => last.text,
  );
  return last;
}

function typeOf(line: string): [[string, string]] | null {
  const [, name, type] = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line) ?? [];
  return name === undefined || type === undefined ? null : [[name, type]];
}

const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/gy;

function readSample(line: string): Sample {
  const [, name, inBraces = '', value] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
  assert.ok(name !== undefined && value !== undefined, `a line of the format: ${line}`);
  const pairs = [...inBraces.matchAll(LABEL)] as unknown as [pair: string, key: string, text: string][];
  assert.equal(
    pairs.reduce((length, [pair]) => length + pair.length, 0),
    inBraces.length,
    line,
  );
  const labels = Object.fromEntries(pairs.map(([, key, text]) => [key, unescaped(text)]));
  const number = value === '+Inf' ? Infinity : Number(value);
  assert.ok(!Number.isNaN(number), `a number: ${line}`);
  return { name, labels, value: number };
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped));
}
