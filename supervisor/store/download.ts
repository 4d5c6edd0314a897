/**
 * Downloads a model from a web address that the operator allows.
 *
 * 1. Checks that the address begins like an entry of `--allowed-urls`. A fragment `#sha256=…` is the expected checksum.
 * 2. Waits until few enough other downloads run (`DownloadGate`).
 * 3. Connects to a checked IP address (`known-hosts.ts`).
 * 4. Follows redirects to addresses that are allowed in the same way.
 * 5. Writes the file, within limits of size and time. A failure leaves no file.
 */
import { createHash, randomUUID } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import type { LookupFunction } from 'node:net';
import { join } from 'node:path';
import type { Agent, Dispatcher } from 'undici';
import { ServeError } from '../../protocol/errors.js';
import { startLimit } from '../machine/limit-timer.js';
import { LookUp, connectionFailure } from '../machine/look-up.js';
import { isAllowedUrl, withoutSecrets, type AllowedUrls } from '../options/allowed-urls.js';
import { formatBytes, formatMs } from '../options/units.js';
import { VERSION } from '../version.js';
import { checkedLookup } from './known-hosts.js';
import { isDiskFull, notWritten } from './stored-model.js';

/** Larger models must be put into the store by other means. */
export const DOWNLOAD_LIMITS = {
  maxBytes: 16 * 1024 ** 3,
  /** Limit of the whole download, with redirects and the wait at the gate. */
  totalMs: 60 * 60_000,
  /** Longest time without progress: until the connection, until the answer, and between pieces of it. */
  idleMs: 30_000,
  maxRedirects: 5,
  /** Four downloads saturate most connections; a deployment of many models waits for the rest. */
  running: 4,
  waiting: 32,
};

type Limits = typeof DOWNLOAD_LIMITS;

export interface DownloadRules {
  readonly allowed: AllowedUrls;
  /** Absolute path of an existing folder that only this server uses. */
  readonly folder: string;
  /** As for `checkedLookup`: those of earlier downloads of this server. */
  readonly publicHosts: Set<string>;
  /** The gate for all downloads of this server. */
  readonly gate: DownloadGate;
  /** Each cancels the download. */
  readonly signals?: readonly AbortSignal[];
  readonly limits?: Partial<Limits>;
  /** For tests: the look-up of names, and a certificate authority. */
  readonly lookup?: LookupFunction;
  readonly ca?: string;
}

/** Whether a model's url is a web address, and not a path in the store. */
export function isWebAddress(url: string): boolean {
  return /^https?:\/\//i.test(url);
}

/**
 * Downloads the file at a web address. The receiver must remove it; its name ends like the path of the address, as in
 * `cats.mar`. A failure leaves nothing behind. `sha256` is lower-case hexadecimal.
 * Rejects with SERVE_MODEL_NOT_FOUND if the address is not valid, SERVE_DOWNLOAD_FAILED if it is not allowed or the
 * download fails, SERVE_OVERLOADED if too many others wait, and SERVE_INTERNAL if the folder has no space.
 */
export async function download(
  url: string,
  rules: DownloadRules,
): Promise<{ readonly path: string; readonly sha256: string }> {
  const address = checkedUrl(url, rules.allowed);
  const limits = { ...DOWNLOAD_LIMITS, ...rules.limits };
  const { signals = [], gate } = rules;
  const lookUp = new LookUp();
  const stop = new AbortController();
  const signal = AbortSignal.any([stop.signal, ...signals]);
  const timer = startLimit(limits.totalMs, () =>
    stop.abort(new Failed(`it took longer than ${formatMs(limits.totalMs)}`)),
  );
  let leave = (): void => {};
  try {
    leave = await gate.enter(signal);
    return await fetchFile(address, rules, limits, rules.lookup ?? lookUp.lookup, signal);
  } catch (thrown) {
    if (stop.signal.aborted) throw failed(url, stop.signal.reason);
    throw failed(url, signal.aborted ? new Failed('its request has ended') : thrown);
  } finally {
    leave();
    timer.stop();
    lookUp.close();
  }
}

/** @throws SERVE_MODEL_NOT_FOUND if the address is not valid, SERVE_DOWNLOAD_FAILED if it is not allowed */
export function checkedUrl(url: string, allowed: AllowedUrls): URL {
  if (!URL.canParse(url)) throw malformed(url, '');
  const address = new URL(url);
  if (address.hash !== '' && !CHECKSUM.test(address.hash))
    throw malformed(url, ': only #sha256= and the 64 digits of a checksum may follow its path');
  if (!isAllowedUrl(address, allowed)) throw failed(url, new Failed('not allowed (allowed_urls)'));
  return address;
}

const CHECKSUM = /^#sha256=([\da-f]{64})$/i;

/** The download failed. The message is a clause. */
class Failed extends Error {
  /** `separator`: text between the address and the reason, as in Multi Model Server's messages. */
  constructor(
    reason: string,
    readonly separator = ': ',
  ) {
    super(reason);
  }
}

async function fetchFile(
  address: URL,
  rules: DownloadRules,
  limits: Limits,
  lookup: LookupFunction,
  signal: AbortSignal,
): Promise<{ path: string; sha256: string }> {
  // Loaded here because loading takes 0.1 s, and most servers download nothing.
  const { Agent } = await import('undici');
  const { idleMs, maxBytes } = limits;
  const agent = new Agent({
    headersTimeout: idleMs,
    bodyTimeout: idleMs,
    connect: {
      timeout: idleMs,
      lookup: checkedLookup(lookup, rules.publicHosts),
      ...(rules.ca === undefined ? {} : { ca: rules.ca }),
    },
  });
  try {
    const { body, headers } = await openFile(address, agent, rules.allowed, limits, signal);
    if (Number(headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes);
    const path = join(rules.folder, `${randomUUID()}-${fileName(address)}`);
    const sha256 = await receiveFile(body, path, maxBytes);
    const wanted = CHECKSUM.exec(address.hash)?.[1]?.toLowerCase();
    if (wanted === undefined || wanted === sha256) return { path, sha256 };
    await rm(path, { force: true });
    throw new Failed(`the file has the SHA-256 checksum ${sha256}, not the one that was asked for`);
  } finally {
    await agent.destroy();
  }
}

/** Follows redirects to the final answer. */
async function openFile(
  address: URL,
  agent: Agent,
  allowed: AllowedUrls,
  { maxRedirects }: Limits,
  signal: AbortSignal,
): Promise<Dispatcher.ResponseData> {
  let place = address;
  for (let redirects = 0; ; redirects += 1) {
    const { origin, pathname, search } = place;
    const answer = await agent.request({
      origin,
      path: pathname + search,
      method: 'GET',
      headers: { 'user-agent': `banana-serve/${VERSION}`, accept: '*/*', 'accept-encoding': 'identity' },
      signal,
      onInfo: bounded(MAX_INFORMATION),
    });
    if (answer.statusCode === 200) return answer;
    answer.body.on('error', () => {}).destroy(); // discards the body
    const { location } = answer.headers;
    if (!REDIRECTS.includes(answer.statusCode) || typeof location !== 'string')
      throw new Failed(`code: ${answer.statusCode}`, ', ');
    if (redirects === maxRedirects) throw new Failed(`it was redirected more than ${maxRedirects} times`);
    place = redirected(location, place, allowed);
  }
}

/** Limit of informational (1xx) responses before the final one: each counts as progress, so `idleMs` would never pass. */
const MAX_INFORMATION = 20;

function bounded(most: number): () => void {
  let left = most;
  return () => {
    left -= 1;
    if (left < 0) throw new Failed(`the host sent more than ${most} informational (1xx) responses`);
  };
}

const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

function redirected(location: string, from: URL, allowed: AllowedUrls): URL {
  if (!URL.canParse(location, from.href))
    throw new Failed('it was redirected to something that is not a valid address');
  const place = new URL(location, from);
  if (isAllowedUrl(place, allowed)) return place;
  throw new Failed(`redirected to ${withoutSecrets(place.href)}, which is not allowed (allowed_urls)`);
}

/** The last part of the path, with an underscore for characters that a file system may refuse. */
function fileName({ pathname }: URL): string {
  return pathname
    .slice(pathname.lastIndexOf('/') + 1)
    .replace(/[^\w.-]/g, '_')
    .slice(-100);
}

function malformed(url: string, why: string): ServeError {
  return new ServeError('SERVE_MODEL_NOT_FOUND', `Invalid model url: ${withoutSecrets(url)}${why}`);
}

/** The error with Multi Model Server's message, followed by the reason. */
function failed(url: string, thrown: unknown): ServeError {
  if (isDiskFull(thrown)) return notWritten(withoutSecrets(url), thrown);
  const separator = thrown instanceof Failed ? thrown.separator : ': ';
  const message = `Failed to download model from: ${withoutSecrets(url)}${separator}${connectionFailure(thrown)}`;
  if (thrown instanceof GateFull)
    return new ServeError('SERVE_OVERLOADED', message, { retryAfterS: BUSY_RETRY_S });
  return new ServeError('SERVE_DOWNLOAD_FAILED', message, { cause: thrown });
}

/** Large models take minutes, so an immediate retry would be refused again. */
const BUSY_RETRY_S = 30;

/**
 * Writes arriving bytes to a new file. Resolves with the SHA-256 in hexadecimal once everything is written; only the user of the server can read the file.
 * A failure leaves no file. `path` must not exist.
 */
async function receiveFile(
  pieces: AsyncIterable<Uint8Array>,
  path: string,
  maxBytes: number,
): Promise<string> {
  const file = await open(path, 'wx', 0o600);
  try {
    const hash = createHash('sha256');
    let bytes = 0;
    for await (const piece of pieces) {
      bytes += piece.length;
      if (bytes > maxBytes) throw tooLarge(maxBytes);
      hash.update(piece);
      await file.writeFile(piece);
    }
    await file.close();
    return hash.digest('hex');
  } catch (thrown) {
    await file.close().catch(() => {}); // the first error is the reason
    await rm(path, { force: true });
    throw thrown;
  }
}

function tooLarge(maxBytes: number): Error {
  return new Error(`it is larger than ${formatBytes(maxBytes)}`);
}

/** Too many downloads wait. The message is a clause. */
class GateFull extends Error {}

/**
 * Lets a few downloads run at once, and a bounded number wait, in the order of their arrival. Without it anyone who may
 * register models could open any number of connections, and fill the temp folder with many files at a time.
 */
export class DownloadGate {
  readonly #most: number;
  readonly #mostWaiting: number;
  readonly #waiting = new Set<() => void>();
  #running = 0;

  constructor(most = DOWNLOAD_LIMITS.running, mostWaiting = DOWNLOAD_LIMITS.waiting) {
    this.#most = most;
    this.#mostWaiting = mostWaiting;
  }

  /**
   * Resolves when the download may start, with a function that ends it: call that once. Rejects at once with GateFull, and
   * while waiting with the reason of `signal`, which must not outlive the download.
   */
  async enter(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#running < this.#most) this.#running += 1;
    else await this.#waitForStart(signal);
    return () => this.#leave();
  }

  #waitForStart(signal: AbortSignal): Promise<void> {
    if (this.#waiting.size >= this.#mostWaiting)
      throw new GateFull(
        `${this.#most} downloads are running and ${this.#mostWaiting} waiting; try again later`,
      );
    return new Promise((resolve, reject) => {
      this.#waiting.add(resolve);
      signal.addEventListener('abort', () => {
        this.#waiting.delete(resolve);
        reject(signal.reason as Error);
      });
    });
  }

  /** Starts the next waiting download, if any. */
  #leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#running -= 1;
    else {
      this.#waiting.delete(next);
      next();
    }
  }
}
