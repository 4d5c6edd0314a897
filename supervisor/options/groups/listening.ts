/** Options of the main listener, and TLS. */
import { parseHost, parsePort } from '../address.js';
import { type TlsListener, parsePemPath, parseTlsListeners } from '../tls-values.js';
import { serverOption, type SomeOptions } from '../option-spec.js';
import { parseFilePath, parseSwitch } from '../units.js';

export const LISTENING = {
  host: serverOption<string>({
    flag: '--host',
    value: '<address>',
    help: 'Address to listen on. All interfaces, as a container needs; use 127.0.0.1 to keep it to this machine.',
    defaultText: '0.0.0.0',
    default: '0.0.0.0',
    parse: parseHost,
  }),
  port: serverOption<number | string>({
    flag: '--port',
    value: '<port>',
    help: 'TCP port, 0 for a free one, or the path of a unix socket (anything with a /). PORT in the environment counts too.',
    defaultText: '8000',
    default: 8000,
    parse: parsePort,
  }),
  tlsCert: serverOption<string | null>({
    flag: '--tls-cert',
    value: '<path>',
    help: 'PEM file of the TLS certificate, followed by its intermediate certificates; clients then use https. Read at the start only. Needs --tls-key.',
    defaultText: 'no TLS',
    default: null,
    parse: parsePemPath,
  }),
  tlsKey: serverOption<string | null>({
    flag: '--tls-key',
    value: '<path>',
    help: "PEM file of the certificate's private key, RSA or EC, not encrypted.",
    defaultText: 'no TLS',
    default: null,
    parse: parsePemPath,
  }),
  tlsFor: serverOption<readonly TlsListener[]>({
    flag: '--tls-for',
    value: '<listeners>',
    help: 'Listeners that use TLS, with the same certificate: main, management, metrics, separated by commas. By default the management API does not.',
    defaultText: 'main',
    default: ['main'],
    parse: parseTlsListeners,
  }),
  readyFile: serverOption<string | null>({
    flag: '--ready-file',
    value: '<path>',
    help: 'File that is written once a worker is ready, with the addresses as JSON ({"url":"http://..."}), and removed at the end: for programs that start the server.',
    defaultText: 'no file',
    default: null,
    parse: parseFilePath,
  }),
  page: serverOption<boolean>({
    flag: '--no-page',
    value: null,
    help: 'Leave out the page at /, its data (GET /_k/live) and its samples. page: false in files and programs.',
    defaultText: 'the page is there',
    default: true,
    parse: parseSwitch,
  }),
} as const satisfies SomeOptions;
