/**
 * `node dist/bench/codec.js`: frame heads as msgpack arrays in a fixed order, or as maps with the names in them?
 * The layout of heads in protocol/wire/codec.ts rests on its result. One call and its result, encoded and decoded.
 */
import { Packr, Unpackr } from 'msgpackr';
import { decodeHead, encodeHead } from '../protocol/wire/codec.js';
import type { Message } from '../protocol/wire/messages.js';
import { compareSteps } from './micro.js';

const HEADERS =
  'Host\n127.0.0.1:8000\nUser-Agent\ncurl/8.5.0\nAccept\n*/*\nContent-Type\napplication/json\nContent-Length\n200';

const CALL: Message = {
  type: 'call',
  calls: [
    {
      id: 4711,
      bodyBytes: 200,
      requestId: '3f2a91c07d5e4b18',
      route: '/',
      path: '/',
      query: '',
      format: 'auto',
      contentType: 'application/json',
      accept: '*/*',
      deadlineMs: null,
      headers: HEADERS,
      method: 'POST',
      params: '',
      asciiJson: false,
      answer: 'auto',
      dialectParams: '',
    },
  ],
  inlineBytes: [200],
  batch: 4711,
  last: true,
};

const RESULT: Message = {
  type: 'result',
  id: 4711,
  status: 200,
  contentType: 'application/json',
  headers: '',
  phrase: '',
  bodyBytes: 120,
  runMs: 0.0421,
};

const packr = new Packr({ useRecords: false, encodeUndefinedAsNil: true });
const unpackr = new Unpackr({ useRecords: false, mapsAsObjects: true, int64AsType: 'number' });

compareSteps(
  `a call (${encodeHead(CALL).length} bytes as an array, ${packr.pack(CALL).length} as a map) and its result`,
  {
    'arrays (protocol/wire/codec.ts, checked when decoded)': () => {
      decodeHead(encodeHead(CALL));
      return decodeHead(encodeHead(RESULT));
    },
    'maps (msgpackr, unchecked)': () => {
      unpackr.unpack(packr.pack(CALL));
      return unpackr.unpack(packr.pack(RESULT)) as unknown;
    },
    'JSON text (unchecked)': () => {
      JSON.parse(Buffer.from(JSON.stringify(CALL)).toString());
      return JSON.parse(Buffer.from(JSON.stringify(RESULT)).toString()) as unknown;
    },
  },
);
