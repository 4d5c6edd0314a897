/**
 * The page at `/`, its files and its live data. A client that likes HTML better than JSON gets the page: a browser. Others
 * get what the listener answers without it. Page and files need no key, and contain no data.
 */
import { ServeError } from '../../../../protocol/errors.js';
import { LIVE_PATH, PAGE_FILES_PATH } from '../../../../protocol/reserved-paths.js';
import { hiddenBecause, type HiddenBecause } from '../../access/app-words.js';
import { managementMistake } from '../../access/management-access.js';
import { refuseRequest, sendPieces, commonHeaders } from '../../answer/own-answers.js';
import { houseFailure } from '../../answer/house-error.js';
import { prefersHtml } from '../../answer/koa-answers.js';
import type { PageFile, PageManagement, ServedPage, Viewer } from '../../request/served-page.js';
import type { RequestContext } from '../../request/request-context.js';
import { queryOf, onceClosed } from '../../socket/request-facts.js';
import { HOUSE_ERROR } from '../../openapi/errors.js';
import { operationsOf } from '../../openapi/operation.js';
import { chooseCoding } from '../../socket/compressed-response.js';
import type { Dialect, Operation } from '../dialect.js';
import paths from './paths.json' with { type: 'json' };
import { isThisMachine } from '../../../options/address.js';

const ROOT = '/';
const FILES_PREFIX = `${PAGE_FILES_PATH}/`;
const METHODS = 'GET, HEAD';
const OPERATIONS = operationsOf(paths);

/** The page runs only its own scripts, and interprets nothing of an app's output as HTML. */
const SAFETY = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' blob: data:",
    'media-src blob:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
};

/** Their names change with their content. */
const FOR_EVER = 'public, max-age=31536000, immutable';

/** Other methods of `/` are the app's. `hasManagement`: whether the listener has the management API, too. */
export function pageDialect({ files, live }: ServedPage, hasManagement: boolean): Dialect {
  return {
    name: 'page',
    paths: new Map([ROOT, LIVE_PATH, `${FILES_PREFIX}{name}`].map((path) => [path, METHODS])),

    hasOnlyPages: true,
    claim({ request, response, path }) {
      if (path === ROOT) addVary(response, 'Accept'); // a cache must not give the page to a client that gets another answer
      if (path === LIVE_PATH)
        return operation('call', (context) => {
          answerLive(context, live, hasManagement);
        });
      if (files === null) return null;
      if (path === ROOT) return prefersHtml(request) ? fileOperation(files.index, 'no-cache') : null;
      const file = path.startsWith(FILES_PREFIX)
        ? files.assets.get(path.slice(FILES_PREFIX.length))
        : undefined;
      return file === undefined ? null : fileOperation(file, FOR_EVER);
    },

    fail: houseFailure,
    errorBody: HOUSE_ERROR,
    describe: () => OPERATIONS.filter(({ path }) => path === LIVE_PATH || files !== null),
  };
}

function operation(auth: Operation['auth'], answer: (context: RequestContext) => void): Operation {
  return { auth, counts: false, methods: METHODS, act: { answer } };
}

function fileOperation(file: PageFile, cacheControl: string): Operation {
  return operation('none', (context) => sendFile(context, file, cacheControl));
}

function sendFile(context: RequestContext, file: PageFile, cacheControl: string): void {
  const { backend, request, response } = context;
  const coding = chooseCoding(request.headers['accept-encoding']);
  const coded = coding === null ? undefined : file.coded[coding];
  addVary(response, 'Accept-Encoding');
  const encoding = coded === undefined || coding === null ? {} : { 'Content-Encoding': coding };
  const headers = { ...SAFETY, 'Content-Type': file.type, 'Cache-Control': cacheControl, ...encoding };
  sendPieces(context, 200, headers, [coded ?? file.identity]);
  backend.observer.answered(context, 200, null);
}

function answerLive(context: RequestContext, live: ServedPage['live'], hasManagement: boolean): void {
  const { backend, request, response } = context;
  const stream = new EventStream(context);
  try {
    const isLog = new URLSearchParams(queryOf(context)).has('log');
    if (isLog && hiddenBecause(context) !== null)
      throw new ServeError(
        'SERVE_FORBIDDEN',
        'Without a key, only programs of this machine may read the log.',
      );
    if (request.method === 'HEAD') {
      stream.open();
      response.end();
    } else if (isLog) live.log.join(stream);
    else live.join(stream, hasManagement ? managementOf(context) : null);
    backend.observer.answered(context, 200, null);
  } catch (thrown) {
    if (!(thrown instanceof ServeError)) throw thrown;
    refuseRequest(context, thrown, {});
  }
}

/** A page in a browser manages models by a key only. */
function managementOf(context: RequestContext): PageManagement {
  const { management, options } = context.backend;
  if (!management.keys.required) return null;
  return managementMistake(context, management, options.corsOrigin) === null ? 'allowed' : 'needs key';
}

function addVary(response: RequestContext['response'], name: string): void {
  const before = response.getHeader('vary');
  response.setHeader('Vary', before === undefined ? name : `${String(before)}, ${name}`);
}

/** Server-sent events to one viewer of the live data. The head is sent with the first of them. */
export class EventStream implements Viewer {
  readonly hidden: HiddenBecause | null;
  readonly leavesFirst: boolean;
  readonly #context: RequestContext;

  constructor(context: RequestContext) {
    this.#context = context;
    this.hidden = hiddenBecause(context);
    this.leavesFirst = !context.hasKey && context.client !== 'unix' && !isThisMachine(context.client);
  }

  get isFree(): boolean {
    const { response } = this.#context;
    return response.writableLength === 0 && !response.destroyed;
  }

  /** Sends the head, if it was not sent yet. */
  open(): void {
    const { response } = this.#context;
    if (response.headersSent) return;
    response.writeHead(200, {
      ...commonHeaders(this.#context),
      'Content-Type': 'text/event-stream',
      // No proxy and no compression may hold events back.
      'Cache-Control': 'no-store, no-transform',
      'X-Accel-Buffering': 'no',
    });
  }

  send(bytes: Buffer): boolean {
    const { response } = this.#context;
    if (!this.isFree) return false;
    this.open();
    response.write(bytes);
    return true;
  }

  /** A client that does not read is cut: the server's end does not wait for it. */
  end(bytes: Buffer): void {
    if (this.send(bytes)) this.#context.response.end();
    else this.cut();
  }

  cut(): void {
    this.#context.response.destroy();
  }

  onceGone(callback: () => void): void {
    onceClosed(this.#context.request, this.#context.response, callback);
  }
}
