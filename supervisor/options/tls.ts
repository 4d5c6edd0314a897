/** Decides which listeners use TLS, and reads and checks certificate and key before anything starts. */
import { X509Certificate, createPrivateKey, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import { configError } from '../../protocol/errors.js';
import { isUnixSocket } from './address.js';
import { sourceNameOf, type ResolvedOptions } from './resolve.js';
import { OPTIONS, type OptionName } from './table.js';
import type { TlsListener } from './value-forms.js';

/** Certificate and private key in PEM. */
export interface TlsCredentials {
  readonly cert: string;
  readonly key: string;
}

export interface TlsPlan extends TlsCredentials {
  readonly listeners: readonly TlsListener[];
  /** For the log; empty if there is nothing to warn of. */
  readonly warning: string;
}

/**
 * Null if no listener uses TLS. `isThere`: whether a listener exists, with an address of its own. `folder`: base of
 * relative paths. @throws SERVE_CONFIG with option, file and remedy
 */
export function planTls(
  resolved: ResolvedOptions,
  isThere: (listener: TlsListener) => boolean,
  folder: string,
): TlsPlan | null {
  const { explicit, options } = resolved;
  const { tlsCert, tlsKey, tlsFor } = options;
  const place = (name: OptionName): string => sourceNameOf(resolved, name);
  if (tlsCert === null && tlsKey === null) {
    if (!explicit.has('tlsFor') || tlsFor.length === 0) return null;
    throw configError(
      `${place('tlsFor')}: TLS needs a certificate and its key; give --tls-cert and --tls-key (certificate_file and private_key_file in config.properties). The server does not create one.`,
    );
  }
  if (tlsCert === null || tlsKey === null) {
    const [given, missing]: [OptionName, OptionName] =
      tlsKey === null ? ['tlsCert', 'tlsKey'] : ['tlsKey', 'tlsCert'];
    throw configError(
      `${place(given)}: a certificate and its key go together; give ${OPTIONS[missing].flag} too.`,
    );
  }
  const absent = tlsFor.find((listener) => !isThere(listener));
  if (absent !== undefined)
    throw configError(
      `${place('tlsFor')}: there is no ${absent} listener with an address of its own; leave it out, or give it a port.`,
    );
  if (tlsFor.includes('main') && isUnixSocket(options.port))
    throw configError(`${place('tlsCert')}: a unix socket needs no TLS; leave it out, or give a port.`);
  const cert = readCertificate(tlsCert, place('tlsCert'), folder);
  const key = readKey(tlsKey, place('tlsKey'), folder);
  checkPair(cert, key, place);
  const warning =
    tlsFor.length === 0 ? unusedWarning(place('tlsCert')) : ageWarning(cert.parsed, place('tlsCert'));
  return { cert: cert.pem, key: key.pem, listeners: tlsFor, warning };
}

interface ReadPem<T> {
  readonly pem: string;
  readonly parsed: T;
  readonly path: string;
}

function readCertificate(path: string, place: string, folder: string): ReadPem<X509Certificate> {
  const pem = readPem(path, place, folder);
  if (!pem.includes('-----BEGIN CERTIFICATE-----'))
    throw configError(
      pem.includes('PRIVATE KEY-----')
        ? `${place} ${path}: this is a key; give the certificate here and the key as --tls-key.`
        : `${place} ${path}: it has no PEM certificate (-----BEGIN CERTIFICATE-----); give the certificate, followed by its intermediate certificates.`,
    );
  try {
    return { pem, path, parsed: new X509Certificate(pem) };
  } catch (thrown) {
    throw configError(
      `${place} ${path}: the certificate is damaged (${messageOf(thrown)}); give the complete PEM file.`,
    );
  }
}

function readKey(path: string, place: string, folder: string): ReadPem<KeyObject> {
  const pem = readPem(path, place, folder);
  if (!pem.includes('PRIVATE KEY-----'))
    throw configError(
      pem.includes('-----BEGIN CERTIFICATE-----')
        ? `${place} ${path}: this is a certificate; give its private key here and the certificate as --tls-cert.`
        : `${place} ${path}: it has no PEM private key (-----BEGIN PRIVATE KEY-----); give the private key of the certificate.`,
    );
  if (/ENCRYPTED/.test(pem))
    throw configError(
      `${place} ${path}: the key is encrypted, and the server cannot ask for a passphrase; give an unencrypted key (openssl pkey -in ${path} -out plain.pem) that only the server can read.`,
    );
  try {
    return { pem, path, parsed: createPrivateKey(pem) };
  } catch (thrown) {
    throw configError(
      `${place} ${path}: the key is damaged (${messageOf(thrown)}); give the complete PEM file.`,
    );
  }
}

function readPem(path: string, place: string, folder: string): string {
  try {
    return readFileSync(resolve(folder, path), 'latin1');
  } catch (thrown) {
    throw configError(
      `${place} ${path}: it cannot be read (${messageOf(thrown)}); give the path of a PEM file.`,
    );
  }
}

function checkPair(
  cert: ReadPem<X509Certificate>,
  key: ReadPem<KeyObject>,
  place: (name: OptionName) => string,
): void {
  if (!cert.parsed.checkPrivateKey(key.parsed))
    throw configError(
      `${place('tlsKey')} ${key.path}: it does not belong to the certificate in ${cert.path}; give a key and a certificate that belong together, the server's own certificate first in its file.`,
    );
  try {
    createSecureContext({ cert: cert.pem, key: key.pem });
  } catch (thrown) {
    throw configError(
      `${place('tlsCert')} ${cert.path}: TLS does not accept it (${messageOf(thrown)}); give another certificate.`,
    );
  }
}

function ageWarning({ validFrom, validTo }: X509Certificate, place: string): string {
  const nowMs = Date.now();
  if (nowMs > Date.parse(validTo))
    return `${place}: the certificate has expired, on ${validTo}; clients refuse it`;
  if (nowMs < Date.parse(validFrom))
    return `${place}: the certificate is not valid before ${validFrom}; clients refuse it until then`;
  return '';
}

function unusedWarning(place: string): string {
  return `${place}: no address begins with https, so the certificate is not used`;
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
