/** Fetches a model from a web address, as far as the operator allows it. */
import { ServeError } from '../../protocol/errors.js';
import { isAllowedUrl, withoutSecrets, type AllowedUrls } from '../options/allowed-urls.js';

/** A file that was downloaded. It is its receiver's: nobody else removes it. */
export interface DownloadedFile {
  /** Absolute, in the folder of the rules; its name ends as the path of the address does, `cats.mar`. */
  readonly path: string;
  /** Removes it; it may be gone already. */
  readonly remove: () => Promise<void>;
}

export interface DownloadRules {
  readonly allowed: AllowedUrls;
  /** An absolute path, of a folder of this server's own that is there. */
  readonly folder: string;
}

/** Whether a model's place is on the web, and not in the store. */
export function isWebAddress(url: string): boolean {
  return /^https?:\/\//i.test(url);
}

/**
 * Downloads what is at a web address. Nothing is left behind when it fails.
 * Rejects with SERVE_MODEL_NOT_FOUND if it is none, SERVE_DOWNLOAD_FAILED if it is not allowed or does not come.
 */
export async function download(url: string, rules: DownloadRules): Promise<DownloadedFile> {
  checkedUrl(url, rules.allowed);
  return Promise.reject(failed(url, 'downloads are not here yet'));
}

/** @throws SERVE_MODEL_NOT_FOUND if it cannot be read, SERVE_DOWNLOAD_FAILED if it is not allowed */
export function checkedUrl(url: string, allowed: AllowedUrls): URL {
  if (!URL.canParse(url))
    throw new ServeError('SERVE_MODEL_NOT_FOUND', `Invalid model url: ${withoutSecrets(url)}`);
  const parsed = new URL(url);
  if (!isAllowedUrl(parsed, allowed)) throw failed(url, 'not allowed (allowed_urls)');
  return parsed;
}

/** In the words of Multi Model Server, with what it does not say: why. */
function failed(url: string, why: string): ServeError {
  const message = `Failed to download model from: ${withoutSecrets(url)}: ${why}`;
  return new ServeError('SERVE_DOWNLOAD_FAILED', message);
}
