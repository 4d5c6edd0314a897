import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Pacer } from '../../../supervisor/budget/readings.js';

/** Readings that end when the test says so. */
class Readings {
  begun = 0;
  #end = (): void => {};
  #onBegin = (): void => {};

  readonly read = (): Promise<void> => {
    this.begun += 1;
    this.#onBegin();
    return new Promise((resolve) => (this.#end = resolve));
  };

  async untilBegun(count: number): Promise<void> {
    while (this.begun < count) await new Promise<void>((resolve) => (this.#onBegin = resolve));
  }

  end(): void {
    this.#end();
  }
}

/** The pacer keeps no process alive. */
const alive = setInterval(() => {}, 1000);
after(() => clearInterval(alive));

const NEVER_MS = 1_000_000;

test('what is asked for during a reading is read after it, once', async () => {
  const readings = new Readings();
  const pacer = new Pacer(readings.read, () => false, NEVER_MS, NEVER_MS);
  pacer.soon();
  pacer.soon();
  await readings.untilBegun(1);
  pacer.soon();
  pacer.soon();
  assert.equal(readings.begun, 1, 'one at a time');
  readings.end();
  await readings.untilBegun(2);
  readings.end();
  pacer.close();
});

test('while something moves, it reads again by itself', async () => {
  const readings = new Readings();
  const pacer = new Pacer(readings.read, () => true, 1, NEVER_MS);
  pacer.soon();
  for (const count of [1, 2, 3]) {
    await readings.untilBegun(count);
    readings.end();
  }
  pacer.close();
});
