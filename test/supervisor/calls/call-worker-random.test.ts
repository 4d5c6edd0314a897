/** Compares held calls with a simple model of them, over random events of a worker. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MONOTONIC_OFFSET_MS } from '../../../protocol/wire/begun-note.js';
import type { Call } from '../../../supervisor/dispatch/call.js';
import { Tap } from '../../protocol/streams.js';
import { OK, newCall } from '../dispatch/calls.js';
import { HandWorker } from './held-call.js';

const FAILED = { type: 'error', message: '', detail: '', status: 0, kind: '' } as const;

type Step =
  | { readonly do: 'assign'; readonly size: number }
  | { readonly do: 'begin' }
  | { readonly do: 'answer' | 'abandon'; readonly which: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('assign' as const), size: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ do: fc.constant('begin' as const) }),
  fc.record({ do: fc.constantFrom('answer' as const, 'abandon' as const), which: fc.nat(20) }),
);

/** One worker's life: the calls as they are held, and as they should be. */
class Life {
  readonly worker: HandWorker;
  readonly finished: string[] = [];
  /** Ids of the calls that the worker holds, by batch. */
  batches: number[][] = [];
  readonly assigned = new Map<number, Call>();
  readonly begun = new Set<number>();
  readonly #places: number;
  readonly #note = { id: 0, atMs: 0 };

  /** `places`: the calls that it runs at the same time; with more than 1, all that it holds. */
  constructor(places: number) {
    this.#places = places;
    this.worker = new HandWorker(
      new Tap(),
      () => this.#note,
      ({ message }) => this.finished.push(message.requestId),
    );
    this.worker.places = places;
  }

  take(next: Step): void {
    if (next.do === 'assign') this.#assignSome(next.size);
    else if (next.do === 'begin') this.#begin();
    else if (next.do === 'answer') this.#answer(next.which);
    else this.#abandon(next.which);
  }

  /** A batch, or single calls into the places that are free. */
  #assignSome(size: number): void {
    if (this.#places === 1) this.#assign(size);
    else for (let i = 0; i < size && this.batches.length < this.#places; i += 1) this.#assign(1);
  }

  #assign(size: number): void {
    const calls = Array.from({ length: size }, (_, i) => newCall(`${this.assigned.size + i}`));
    const { worker } = this;
    for (const call of calls) call.sendTo(worker);
    worker.assign(calls);
    for (const call of calls) this.assigned.set(call.message.id, call);
    this.batches.push(calls.map(({ message }) => message.id));
  }

  #begin(): void {
    const next = this.batches.slice(0, this.#places).find(([id]) => !this.begun.has(id as number));
    if (next === undefined) return;
    for (const id of next) this.begun.add(id);
    this.#note.id = next.at(-1) as number;
    this.#note.atMs = MONOTONIC_OFFSET_MS + performance.now();
  }

  #answer(which: number): void {
    const running = this.batches
      .slice(0, this.#places)
      .flat()
      .filter((id) => this.begun.has(id));
    const id = running[which % running.length];
    if (id === undefined) return;
    this.worker.take({ type: 'result', id, ...OK, bodyBytes: 0, runMs: 1 }, []);
    this.#forget(id);
  }

  /** The client leaves; a worker that has not begun the call lets it go at once. */
  #abandon(which: number): void {
    const held = this.batches.flat();
    const id = held[which % held.length];
    const call = this.assigned.get(id ?? 0);
    if (id === undefined || call === undefined || call.settled) return;
    call.end(0);
    this.worker.abandon(call, 'the client left');
    if (this.begun.has(id)) return;
    this.worker.take({ ...FAILED, id, code: 'SERVE_CANCELLED', runMs: 0 }, []);
    this.#forget(id);
  }

  #forget(id: number): void {
    this.batches = this.batches.map((batch) => batch.filter((held) => held !== id));
    this.batches = this.batches.filter((batch) => batch.length > 0);
  }
}

test('in any order of begins, endings, cancels and deaths, a worker holds exactly the calls without an ending', () => {
  fc.assert(
    fc.property(fc.constantFrom(1, 1, 3, 8), fc.array(step, { maxLength: 60 }), (places, steps) => {
      const life = new Life(places);
      const { worker } = life;
      for (const next of steps) {
        life.take(next);
        const held = life.batches.flat();
        assert.deepEqual([worker.load, worker.heldBatches], [held.length, life.batches.length]);
        assert.equal(life.finished.length, life.assigned.size - held.length);
        assert.equal(new Set(life.finished).size, life.finished.length, 'each ends once');
      }
      const held = life.batches.flat();
      const lost = worker.lose();
      assert.deepEqual(
        lost.map(({ message }) => message.id),
        held,
      );
      for (const call of lost) {
        if (!call.settled)
          assert.equal(call.checkBegun(), life.begun.has(call.message.id), 'what has begun is a fact');
      }
      worker.close();
    }),
    { numRuns: 500 },
  );
});
