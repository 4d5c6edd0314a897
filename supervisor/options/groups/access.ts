/** Options of access: API keys and CORS. */
import { type KeyDigest, parseKeys } from '../api-key.js';
import { type AllowedOrigins, parseOrigins, parseTokens } from '../cors-origin.js';
import { parseFilePath } from '../units.js';
import { serverOption, type SomeOptions } from '../option-spec.js';

export const ACCESS = {
  apiKey: serverOption<readonly KeyDigest[] | null>({
    flag: '--api-key',
    value: '<key>',
    help: 'API key that calls and /status must send; several may be valid at once, separated by commas. Flags are visible in ps for a moment: prefer the environment or a file.',
    defaultText: 'no key needed',
    default: null,
    secret: true,
    parse: parseKeys,
  }),
  apiKeyFile: serverOption<string | null>({
    flag: '--api-key-file',
    value: '<path>',
    help: 'File of API keys, one per line, valid in addition to those of --api-key; # begins a comment line. Read at the start only.',
    defaultText: 'no file',
    default: null,
    parse: parseFilePath,
  }),
  corsOrigin: serverOption<AllowedOrigins | null>({
    flag: '--cors-origin',
    value: '<origin>',
    help: 'Origin whose pages may call from a browser, such as https://app.example.com; several, separated by commas, or * for all. Off: a page of another origin cannot read any reply, and cannot call a server without an API key.',
    defaultText: 'off',
    default: null,
    parse: parseOrigins,
  }),
  corsMethods: serverOption<readonly string[] | null>({
    flag: '--cors-methods',
    value: '<methods>',
    help: 'Methods that pages of other origins may use (Access-Control-Allow-Methods), separated by commas, for every path. No effect without --cors-origin.',
    defaultText: "the path's",
    default: null,
    parse: (raw) => parseTokens(raw, 'GET, POST').map((method) => method.toUpperCase()),
  }),
  corsHeaders: serverOption<readonly string[] | null>({
    flag: '--cors-headers',
    value: '<names>',
    help: 'Request headers that pages of other origins may send (Access-Control-Allow-Headers), separated by commas. No effect without --cors-origin.',
    defaultText: 'all that a page asks for',
    default: null,
    parse: (raw) => parseTokens(raw, 'Content-Type, X-Request-Id'),
  }),
} as const satisfies SomeOptions;
