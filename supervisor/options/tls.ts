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

/** Certificate and private key in PEM, and where they are used. */
export interface TlsPlan {
  readonly cert: string;
  readonly key: string;
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
  const [certPlace, keyPlace] = [`${place('tlsCert')} ${tlsCert}`, `${place('tlsKey')} ${tlsKey}`];
  const cert = readPem(resolve(folder, tlsCert), certPlace);
  const key = readPem(resolve(folder, tlsKey), keyPlace);
  const certificate = certificateIn(cert, certPlace);
  if (!certificate.checkPrivateKey(keyIn(key, keyPlace, tlsKey)))
    throw configError(
      `${keyPlace}: it does not belong to the certificate in ${tlsCert}; give a key and a certificate that belong together, the server's own certificate first in its file.`,
    );
  refuseFailing(
    () => createSecureContext({ cert, key }),
    certPlace,
    (why) => `TLS does not accept it (${why}); give another certificate.`,
  );
  const warning = tlsFor.length === 0 ? UNUSED : ageWarning(certificate);
  return { cert, key, listeners: tlsFor, warning: warning && `${place('tlsCert')}: ${warning}` };
}

function certificateIn(pem: string, place: string): X509Certificate {
  if (!pem.includes('-----BEGIN CERTIFICATE-----'))
    throw configError(
      pem.includes('PRIVATE KEY-----')
        ? `${place}: this is a key; give the certificate here and the key as --tls-key.`
        : `${place}: it has no PEM certificate (-----BEGIN CERTIFICATE-----); give the certificate, followed by its intermediate certificates.`,
    );
  return refuseFailing(
    () => new X509Certificate(pem),
    place,
    (why) => `the certificate is damaged (${why}); give the complete PEM file.`,
  );
}

function keyIn(pem: string, place: string, path: string): KeyObject {
  if (!pem.includes('PRIVATE KEY-----'))
    throw configError(
      pem.includes('-----BEGIN CERTIFICATE-----')
        ? `${place}: this is a certificate; give its private key here and the certificate as --tls-cert.`
        : `${place}: it has no PEM private key (-----BEGIN PRIVATE KEY-----); give the private key of the certificate.`,
    );
  if (/ENCRYPTED/.test(pem))
    throw configError(
      `${place}: the key is encrypted, and the server cannot ask for a passphrase; give an unencrypted key (openssl pkey -in ${path} -out plain.pem) that only the server can read.`,
    );
  return refuseFailing(
    () => createPrivateKey(pem),
    place,
    (why) => `the key is damaged (${why}); give the complete PEM file.`,
  );
}

function readPem(path: string, place: string): string {
  return refuseFailing(
    () => readFileSync(path, 'latin1'),
    place,
    (why) => `it cannot be read (${why}); give the path of a PEM file.`,
  );
}

/** @throws SERVE_CONFIG with the sentence of `problem` if `use` fails */
function refuseFailing<T>(use: () => T, place: string, problem: (why: string) => string): T {
  try {
    return use();
  } catch (thrown) {
    throw configError(`${place}: ${problem((thrown as Error).message)}`);
  }
}

function ageWarning({ validFrom, validTo }: X509Certificate): string {
  const nowMs = Date.now();
  if (nowMs > Date.parse(validTo)) return `the certificate has expired, on ${validTo}; clients refuse it`;
  if (nowMs < Date.parse(validFrom))
    return `the certificate is not valid before ${validFrom}; clients refuse it until then`;
  return '';
}

const UNUSED = 'no address begins with https, so the certificate is not used';
