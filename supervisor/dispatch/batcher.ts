/**
 * Decides which calls go to which worker now, which are given up, and when to look again; predicts when a call that comes now
 * would begin. It has no clock, timer or workers of its own, so that the simulator of the tests runs the very same code.
 *
 * 1. The worker: one with a free place that is not frozen, the least loaded first; else one that runs a short call or batch, so
 *    that it has the next one when it is done.
 * 2. The line: of those whose batch is due, the one whose head came first. A batch is due when it is full, when its head
 *    has waited the delay, or when nothing else may join it.
 * 3. The calls: as many as the batch size allows, without those whose answer would come too late.
 */
import type { Line, Lines, Waiting } from './lines.js';
import type { ServiceTime } from './service-time.js';

/** A ready worker, as the batcher sees it. */
export interface BatchWorker {
  /** Number of calls that it holds, running or sent ahead. */
  readonly load: number;
  /** Calls that it begins without waiting for others to end; with more than 1, nothing is sent ahead. */
  readonly places: number;
  /** Number of batches that they are in; a call that runs alone is a batch of one. */
  readonly heldBatches: number;
  /** Time since the first of them began, or since it should have begun; 0 if there is none. */
  readonly runningMs: number;
  /** Whether its first call is a WebSocket, which lasts as long as its client wants: nothing may be sent ahead behind it. */
  readonly isEngaged: boolean;
  /** Whether a signal has frozen it (SIGSTOP): it gets a call only if all are, since nothing else may ever wake it. */
  readonly isFrozen: boolean;
  /** Most calls of this route that may begin together. */
  maxBatch(route: string): number;
}

/** Returns the number of calls that may follow the running one into one of so many workers, from the measured run times. */
export type SendAhead = (service: ServiceTime, workers: number) => number;

export interface BatchRules {
  /** Most calls in a batch. */
  readonly batchSize: number;
  /** Longest time that a call waits beside an idle worker for others to join it. */
  readonly maxBatchDelayMs: number;
}

/** The next step. If it gives calls away or up, there may be another one at once. */
export interface Plan<T, W> {
  /** The worker that gets `calls`, as one batch. */
  readonly worker: W | null;
  readonly calls: readonly T[];
  /** Calls whose answers would come too late. */
  readonly late: readonly T[];
  /** When to plan again if nothing happens before; null if only an event can change the plan. */
  readonly againAtMs: number | null;
}

/** Error of predictions: a turn or two of an event loop. A call that begins should meet its deadline. */
const PREDICTION_SLACK_MS = 2;

/** Share of the time left to the deadline that a new call's prediction may use: calls before it may take longer than the mean. */
const ADMITTED_SHARE = 0.85;

/** Multiple of the expected run time that a call that waits for others keeps before its deadline. */
const WAITING_RISK = 2;

const NONE: readonly never[] = [];
const NOTHING: Plan<never, never> = { worker: null, calls: NONE, late: NONE, againAtMs: null };

export class Batcher<T extends Waiting, W extends BatchWorker> {
  rules: BatchRules;
  readonly #service: ServiceTime;
  readonly #sendAhead: SendAhead;
  /** Round robin of equally loaded workers. */
  #rotation = 0;
  #dueAtMs = Infinity;

  constructor(rules: BatchRules, service: ServiceTime, sendAhead: SendAhead) {
    this.rules = rules;
    this.#service = service;
    this.#sendAhead = sendAhead;
  }

  /** Returns the next step; the caller does it, and asks again until there is none. */
  plan(lines: Lines<T>, workers: readonly W[], nowMs: number): Plan<T, W> {
    if (lines.length === 0) return NOTHING;
    const worker = this.#choose(workers);
    if (worker === null) return NOTHING;
    const line = this.#findDue(lines, worker, nowMs);
    if (line === null) return again(this.#dueAtMs);
    if (worker.load >= worker.places) {
      const aheadAtMs = this.#aheadAtMs(line, worker, workers.length, nowMs);
      if (aheadAtMs > nowMs) return again(aheadAtMs);
    }
    return this.#gather(line, worker, lines.length, nowMs);
  }

  /** Predicts the wait of a call behind all calls in line and `arriving` ones that are not in line yet; null if unknown. */
  predictWaitMs(lines: Lines<T>, workers: readonly W[], arriving: number): number | null {
    let calls = lines.length + arriving;
    let runs = 0; // full batches; the calls that fill none run together with the new one
    let largest = 1;
    for (const { first, length } of lines.all) {
      if (first === null) continue;
      const size = workers[0] === undefined ? 1 : this.#sizeFor(first, workers[0]);
      runs += Math.floor(length / size);
      largest = Math.max(largest, size);
    }
    runs += Math.floor(arriving / largest);
    let allPlaces = 0;
    for (const { load, heldBatches, places } of workers) {
      calls += load;
      runs += heldBatches;
      allPlaces += places;
    }
    return this.#service.predictWaitMs(calls, allPlaces, runs);
  }

  /** Whether a call behind these would be answered too late if `leftMs` are left to its deadline. */
  comesTooLate(lines: Lines<T>, workers: readonly W[], arriving: number, leftMs: number): boolean {
    const waitMs = this.predictWaitMs(lines, workers, arriving);
    // A worker is free: the call is tried, however slow others were, or a slow period would be assumed for ever.
    if (waitMs === null || waitMs === 0) return false;
    return waitMs + (this.#service.meanMs ?? 0) + PREDICTION_SLACK_MS > ADMITTED_SHARE * leftMs;
  }

  /** Most calls of this line that this worker may be given at once. */
  #sizeFor(head: T, worker: W): number {
    const { batchSize } = this.rules;
    return batchSize === 1 || head.isConversation ? 1 : Math.min(batchSize, worker.maxBatch(head.route));
  }

  #choose(workers: readonly W[]): W | null {
    const { length } = workers;
    let free: W | null = null;
    let frozen: W | null = null;
    let frozenCount = 0;
    this.#rotation += 1;
    for (let i = 0; i < length; i += 1) {
      const worker = workers[(i + this.#rotation) % length] as W;
      const { load } = worker;
      if (worker.isFrozen) {
        frozenCount += 1;
        if (load === 0) frozen = worker;
        continue;
      }
      if (load === 0) return worker;
      if (load < worker.places && (free === null || load < free.load)) free = worker;
    }
    return frozenCount === length ? frozen : (free ?? this.#chooseBusy(workers));
  }

  /** Chooses the worker that gets the next batch ahead; null if none may. */
  #chooseBusy(workers: readonly W[]): W | null {
    const { length } = workers;
    const ahead = this.#sendAhead(this.#service, length);
    const batchesAhead = this.rules.batchSize > 1 && batchMayGoAhead(this.#service, length) ? 1 : 0;
    const longMs = longCallMs(this.#service, length);
    let least: W | null = null;
    for (let i = 0; i < length; i += 1) {
      const worker = workers[(i + this.#rotation) % length] as W;
      if (worker.isFrozen || worker.places > 1) continue;
      const { load, heldBatches } = worker;
      // Behind a batch of several calls goes one more.
      if (heldBatches > Math.max(batchesAhead, load > heldBatches ? 0 : ahead)) continue;
      if (least !== null && !this.#endsBefore(worker, least)) continue;
      if (!worker.isEngaged && worker.runningMs <= longMs) least = worker;
    }
    return least;
  }

  #endsBefore(worker: W, least: W): boolean {
    if (worker.heldBatches !== least.heldBatches) return worker.heldBatches < least.heldBatches;
    return this.rules.batchSize > 1 && this.#restMs(worker) < this.#restMs(least);
  }

  /** Expected time until the worker has ended all that it holds. */
  #restMs({ load, heldBatches, runningMs }: W): number {
    return Math.max(0, (this.#service.predictMs(load, heldBatches) ?? 0) - runningMs);
  }

  /** Finds the line whose batch is due and whose head came first; notes when the next batch will be due. */
  #findDue(lines: Lines<T>, worker: W, nowMs: number): Line<T> | null {
    let first: Line<T> | null = null;
    let firstOrder = Infinity;
    this.#dueAtMs = Infinity;
    for (const line of lines.all) {
      const head = line.first;
      if (head === null || head.arrivalOrder > firstOrder) continue;
      const dueAtMs = this.#batchDueAtMs(line, head, worker);
      if (dueAtMs > nowMs) {
        this.#dueAtMs = Math.min(this.#dueAtMs, dueAtMs);
        continue;
      }
      first = line;
      firstOrder = head.arrivalOrder;
    }
    return first;
  }

  #batchDueAtMs(line: Line<T>, head: T, worker: W): number {
    const { maxBatchDelayMs } = this.rules;
    if (maxBatchDelayMs === 0 || line.length >= this.#sizeFor(head, worker)) return 0;
    return Math.min(head.inLineSinceMs + maxBatchDelayMs, this.#latestStartMs(line));
  }

  /** Latest begin of the batch that meets the deadlines of these calls; 0 if run times are unknown. */
  #latestStartMs(line: Line<T>): number {
    let deadlineAtMs = Infinity;
    for (let call = line.first; call !== null; call = call.nextInLine) {
      if (call.deadlineAtMs !== null) deadlineAtMs = Math.min(deadlineAtMs, call.deadlineAtMs);
    }
    if (deadlineAtMs === Infinity) return Infinity;
    const runMs = this.#service.predictMs(line.length, 1);
    return runMs === null ? 0 : deadlineAtMs - WAITING_RISK * runMs - PREDICTION_SLACK_MS;
  }

  /** When the head of this line may be sent ahead into a busy worker; Infinity if not before an event of that worker. */
  #aheadAtMs(line: Line<T>, worker: W, workers: number, nowMs: number): number {
    const head = line.first as T;
    // A call that was lost once waits for an idle worker: behind another call that kills, it would be lost for good.
    if (head.isConversation || head.losses > 0) return Infinity;
    const size = this.#sizeFor(head, worker);
    if (size === 1) return worker.heldBatches <= this.#sendAhead(this.#service, workers) ? nowMs : Infinity;
    if (worker.heldBatches > 1) return Infinity;
    // Nothing can join the batch, and no other worker can be free earlier.
    if (line.length >= size && workers === 1) return nowMs;
    return nowMs + this.#restMs(worker) - gapToCoverMs(this.#service);
  }

  #gather(line: Line<T>, worker: W, waiting: number, nowMs: number): Plan<T, W> {
    const head = line.first as T;
    const size = Math.min(this.#sizeFor(head, worker), line.length);
    const calls: T[] = [];
    let late: T[] | null = null;
    for (let call: T | null = head; call !== null && calls.length < size; call = call.nextInLine) {
      if (call.isConversation && calls.length > 0) break;
      // Others fill the batch without this call, whose answer would come too late.
      const isCrowded = waiting - (late?.length ?? 0) > size;
      if (isCrowded && this.#endsTooLate(call, worker, size, nowMs)) (late ??= []).push(call);
      else calls.push(call);
    }
    return { worker, calls, late: late ?? NONE, againAtMs: null };
  }

  /** Whether a batch of this size would end after the call's deadline. */
  #endsTooLate({ deadlineAtMs }: T, worker: W, size: number, nowMs: number): boolean {
    const runMs = deadlineAtMs === null ? null : this.#service.predictMs(size, 1);
    if (deadlineAtMs === null || runMs === null) return false;
    return nowMs + this.#restMs(worker) + runMs + PREDICTION_SLACK_MS > deadlineAtMs;
  }
}

function again(atMs: number): Plan<never, never> {
  return atMs === Infinity ? NOTHING : { ...NOTHING, againAtMs: atMs };
}

const TURN_MS = 2;
const MAX_AHEAD = 64;

/** Rate of a pipe between two event loops that take turns; 1 MB there and back took a worker 4 to 6 ms. */
const BYTES_PER_MS = 400_000;

/** A call that runs longer than this is long, if it has few bytes to move. */
const LONG_CALL_MS = 25;

/** The same if there is no other worker: the next call waits for this one in any case. */
const LONG_CALL_ALONE_MS = 50;

/** Moving the bytes of a long call takes less than this part of it. */
const SMALL_GAP = 0.02;

/** A call so many times longer than the mean is long, whatever it moves: nothing should wait behind it. */
const FAR_ABOVE_MEAN = 2;

/** Most bytes of calls sent ahead to a worker: the bounds of the queue do not count them. */
const AHEAD_BYTES = 4_000_000;

/**
 * The number of calls behind the running one that a worker may hold, so that it never idles for a pipe round trip.
 *
 * The gap to cover is one turn of the front's event loop under load, 1 to 2 ms at 32 connections, not the bare
 * 17 us of the pipe, and the time that the bytes take: a worker deep in a call reads nothing, so a large body, and
 * the answer before it, move while nothing runs (docs/benchmarks.md, "Send-ahead"). Enough calls go ahead to fill
 * the gap by predicted run time; none before anything is known, and when any recent call was long: there the gap is a
 * small part of a call, while a call sent ahead could sit behind a slow one with another worker free.
 */
export function sendAhead(service: ServiceTime, workers: number): number {
  const { meanMs, slowMs, meanBytes } = service;
  if (meanMs === null || slowMs > longCallMs(service, workers)) return 0;
  const gapMs = gapToCoverMs(service);
  const fill = Math.ceil(gapMs / Math.max(meanMs, gapMs / MAX_AHEAD));
  return Math.min(MAX_AHEAD, fill, Math.max(1, Math.floor(AHEAD_BYTES / meanBytes)));
}

/**
 * Whether a batch may be sent ahead behind a running one. A single slow run does not prevent it, as it does for calls: a
 * batch is sent late, when the running one is about to end, so it hardly ever waits behind a slow one.
 */
function batchMayGoAhead(service: ServiceTime, workers: number): boolean {
  return service.meanMs !== null && service.meanMs <= longCallMs(service, workers);
}

/** Nothing is sent ahead behind a call that runs longer than this: a slow one, or a stream without a reader. */
function longCallMs({ meanMs, meanBytes }: ServiceTime, workers: number): number {
  const worthwhileMs = meanBytes / BYTES_PER_MS / SMALL_GAP;
  const longMs = workers === 1 ? LONG_CALL_ALONE_MS : LONG_CALL_MS;
  return Math.max(longMs, Math.min(worthwhileMs, FAR_ABOVE_MEAN * (meanMs ?? 0)));
}

/** Time that a worker would idle between two runs if nothing were sent ahead. */
function gapToCoverMs({ meanBytes }: ServiceTime): number {
  return TURN_MS + meanBytes / BYTES_PER_MS;
}
