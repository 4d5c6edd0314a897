/** Real certificates for this machine, made by openssl: for a test that `needs('openssl')`. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Certificate {
  /** Paths of PEM files. */
  readonly certPath: string;
  readonly keyPath: string;
  readonly cert: string;
  readonly key: string;
}

/** A test, or `node:test` for the group of tests whose definition is running. */
interface Ending {
  after(then: () => void): void;
}

const KINDS = {
  ec: ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'],
  rsa: ['-newkey', 'rsa:2048'],
} as const;

/** For localhost, 127.0.0.1 and ::1, signed by itself. Its files are removed when the test ends, or the group of tests. */
export function makeCertificate(t: Ending, kind: keyof typeof KINDS = 'ec'): Certificate {
  const folder = mkdtempSync(join(tmpdir(), 'banana-certificate-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [certPath, keyPath] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  const names = 'subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1';
  const form = ['req', '-x509', '-nodes', '-days', '2', '-subj', '/CN=localhost', '-addext', names];
  execFileSync('openssl', [...form, ...KINDS[kind], '-keyout', keyPath, '-out', certPath], { stdio: 'pipe' });
  return { certPath, keyPath, cert: readFileSync(certPath, 'utf8'), key: readFileSync(keyPath, 'utf8') };
}
