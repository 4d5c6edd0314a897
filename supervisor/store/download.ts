/**
 * Fetches a model from a web address, as far as the operator allows it.
 *
 * 1. The address must begin as an entry of `--allowed-urls` does. A fragment `#sha256=…` says what must come.
 * 2. It waits until few enough others run (`download-gate.ts`).
 * 3. The connection goes to an address that was checked (`known-hosts.ts`).
 * 4. Where it is redirected to must be allowed in the same way.
 * 5. What comes is written to a file, within bounds on size and time. What fails leaves none.
 */
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Agent, Dispatcher } from 'undici';
import { ServeError } from '../../protocol/errors.js';
import { startLimit } from '../machine/limit-timer.js';
import { LookUp } from '../machine/look-up.js';
import { isAllowedUrl, withoutSecrets, type AllowedUrls } from '../options/allowed-urls.js';
import { formatMs } from '../options/units.js';
import { VERSION } from '../version.js';
import { GateFull, type DownloadGate } from './download-gate.js';
import { AddressRefused, type KnownHosts, type Lookup } from './known-hosts.js';
import { TooLarge, receiveFile } from './receive-file.js';

/** A file that was downloaded. It is its receiver's: nobody else removes it. */
export interface DownloadedFile {
  /** Absolute, in the folder of the rules; its name ends as the path of the address does, `cats.mar`. */
  readonly path: string;
  /** In hexadecimal, lower case. */
  readonly sha256: string;
  /** Removes it; it may be gone already. */
  readonly remove: () => Promise<void>;
}

export interface DownloadLimits {
  readonly maxBytes: number;
  /** From its beginning to its end, redirects and the wait for its turn included. */
  readonly totalMs: number;
  /** While nothing comes: until a connection, until an answer, until more of it. */
  readonly idleMs: number;
  readonly maxRedirects: number;
}

/** Whoever fetches larger models puts them into the store by other means. */
export const DOWNLOAD_LIMITS: DownloadLimits = {
  maxBytes: 16 * 1024 ** 3,
  totalMs: 60 * 60_000,
  idleMs: 30_000,
  maxRedirects: 5,
};

export interface DownloadRules {
  readonly allowed: AllowedUrls;
  /** An absolute path, of a folder of this server's own that is there. */
  readonly folder: string;
  /** What earlier downloads of this server have found. */
  readonly hosts: KnownHosts;
  /** Which downloads of this server run, and which wait. */
  readonly gate: DownloadGate;
  /** Any of them: nobody wants it any more. They may live longer than it: no listener stays on them. */
  readonly signals?: readonly AbortSignal[];
  readonly limits?: Partial<DownloadLimits>;
  /** For tests: where names lead, and whose certificates count. */
  readonly lookup?: Lookup;
  readonly ca?: string;
}

/** Whether a model's place is on the web, and not in the store. */
export function isWebAddress(url: string): boolean {
  return /^https?:\/\//i.test(url);
}

/**
 * Downloads what is at a web address. Nothing is left behind when it fails.
 * Rejects with SERVE_MODEL_NOT_FOUND if it is none, SERVE_DOWNLOAD_FAILED if it is not allowed or does not come,
 * SERVE_OVERLOADED if too many others wait, and SERVE_INTERNAL if the folder has no room.
 */
export async function download(url: string, rules: DownloadRules): Promise<DownloadedFile> {
  const address = checkedUrl(url, rules.allowed);
  const limits = { ...DOWNLOAD_LIMITS, ...rules.limits };
  const { signals = [], gate } = rules;
  const lookUp = new LookUp();
  const stop = new AbortController();
  const onLeft = (): void => stop.abort(new Failed('nobody waits for it any more'));
  for (const signal of signals) signal.addEventListener('abort', onLeft, { once: true });
  if (signals.some(({ aborted }) => aborted)) onLeft();
  const timer = startLimit(limits.totalMs, () =>
    stop.abort(new Failed(`it took longer than ${formatMs(limits.totalMs)}`)),
  );
  let leave = (): void => {};
  try {
    leave = await gate.enter(stop.signal);
    return await fetchFile(address, rules, limits, rules.lookup ?? lookUp.lookup, stop.signal);
  } catch (thrown) {
    throw failed(url, stop.signal.aborted ? stop.signal.reason : thrown);
  } finally {
    leave();
    timer.stop();
    for (const signal of signals) signal.removeEventListener('abort', onLeft);
    lookUp.close();
  }
}

/** @throws SERVE_MODEL_NOT_FOUND if it cannot be read, SERVE_DOWNLOAD_FAILED if it is not allowed */
export function checkedUrl(url: string, allowed: AllowedUrls): URL {
  if (!URL.canParse(url)) throw malformed(url, '');
  const address = new URL(url);
  if (address.hash !== '' && !CHECKSUM.test(address.hash))
    throw malformed(url, ': only #sha256= and the 64 digits of a checksum may follow its path');
  if (!isAllowedUrl(address, allowed)) throw failed(url, new Failed('not allowed (allowed_urls)'));
  return address;
}

const CHECKSUM = /^#sha256=([\da-f]{64})$/i;

/** Why there is no file, as a clause. */
class Failed extends Error {
  /** `separator`: between the address and the reason, as Multi Model Server has it. */
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
  limits: DownloadLimits,
  lookup: Lookup,
  signal: AbortSignal,
): Promise<DownloadedFile> {
  // It takes 0.1 s to load, and most servers download nothing.
  const { Agent } = await import('undici');
  const { idleMs, maxBytes } = limits;
  const agent = new Agent({
    headersTimeout: idleMs,
    bodyTimeout: idleMs,
    connect: {
      timeout: idleMs,
      lookup: rules.hosts.checked(lookup),
      ...(rules.ca === undefined ? {} : { ca: rules.ca }),
    },
  });
  try {
    const { body, headers } = await openFile(address, agent, rules.allowed, limits, signal);
    if (Number(headers['content-length'] ?? 0) > maxBytes) throw new TooLarge(maxBytes);
    const path = join(rules.folder, `${randomUUID()}-${fileName(address)}`);
    const sha256 = await receiveFile(body, path, maxBytes);
    const file = { path, sha256, remove: () => rm(path, { force: true }) };
    await checkSum(address, file);
    return file;
  } finally {
    await agent.destroy();
  }
}

/** Asks until an answer is no redirect. */
async function openFile(
  address: URL,
  agent: Agent,
  allowed: AllowedUrls,
  { maxRedirects }: DownloadLimits,
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
    answer.body.on('error', () => {}).destroy(); // nothing of it is wanted
    const { location } = answer.headers;
    if (!REDIRECTS.includes(answer.statusCode) || typeof location !== 'string')
      throw new Failed(`code: ${answer.statusCode}`, ', ');
    if (redirects === maxRedirects) throw new Failed(`it was redirected more than ${maxRedirects} times`);
    place = redirected(location, place, allowed);
  }
}

/** Answers that only inform (1xx), before the real one. Each is a sign of life, so that `idleMs` never passes. */
const MAX_INFORMATION = 20;

function bounded(most: number): () => void {
  let left = most;
  return () => {
    left -= 1;
    if (left < 0) throw new Failed(`more than ${most} answers came that only inform (1xx)`);
  };
}

const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

function redirected(location: string, from: URL, allowed: AllowedUrls): URL {
  if (!URL.canParse(location, from.href)) throw new Failed('it was redirected to what is no address');
  const place = new URL(location, from);
  if (isAllowedUrl(place, allowed)) return place;
  throw new Failed(`redirected to ${withoutSecrets(place.href)}, which is not allowed (allowed_urls)`);
}

/** The last part of the path, in letters that every file system knows. */
function fileName({ pathname }: URL): string {
  return pathname
    .slice(pathname.lastIndexOf('/') + 1)
    .replace(/[^\w.-]/g, '_')
    .slice(-100);
}

/** Removes the file if it is another than the address asks for. */
async function checkSum({ hash }: URL, { sha256, remove }: DownloadedFile): Promise<void> {
  const wanted = CHECKSUM.exec(hash)?.[1]?.toLowerCase();
  if (wanted === undefined || wanted === sha256) return;
  await remove();
  throw new Failed(`what came has the SHA-256 checksum ${sha256}, and not the one that is asked for`);
}

function malformed(url: string, why: string): ServeError {
  return new ServeError('SERVE_MODEL_NOT_FOUND', `Invalid model url: ${withoutSecrets(url)}${why}`);
}

/** In the words of Multi Model Server, and why, which it does not say. */
function failed(url: string, thrown: unknown): ServeError {
  const { code, message: detail } = thrown as NodeJS.ErrnoException;
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    const cure =
      "there is no room for it in the server's temp folder. Make room, or name another one in TMPDIR.";
    const options = { status: 507, detail, cause: thrown }; // as for an archive that is unpacked
    return new ServeError('SERVE_INTERNAL', `${withoutSecrets(url)}: ${cure}`, options);
  }
  const separator = thrown instanceof Failed ? thrown.separator : ': ';
  const message = `Failed to download model from: ${withoutSecrets(url)}${separator}${reasonOf(thrown)}`;
  if (thrown instanceof GateFull)
    return new ServeError('SERVE_OVERLOADED', message, { retryAfterS: BUSY_RETRY_S });
  return new ServeError('SERVE_DOWNLOAD_FAILED', message, { cause: thrown });
}

/** Large models take minutes: whoever asks again at once is refused again. */
const BUSY_RETRY_S = 30;

function reasonOf(thrown: unknown): string {
  if (thrown instanceof Failed || thrown instanceof TooLarge || thrown instanceof AddressRefused)
    return thrown.message;
  const { message, code, errors } = thrown as { message?: string; code?: string; errors?: Error[] };
  // A name with several addresses fails with an error for each and no message of its own.
  return (message || errors?.[0]?.message || code) ?? 'unknown';
}
