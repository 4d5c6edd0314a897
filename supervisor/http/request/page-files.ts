/** The files of the page at `/`, as request handlers see them. `status/page-files.ts` reads them. */

export interface PageFile {
  readonly type: string;
  /** Its bytes as they are, and in each coding in which the build has compressed them. */
  readonly identity: Buffer;
  readonly coded: Readonly<Partial<Record<'br' | 'gzip', Buffer>>>;
}

export interface PageFiles {
  readonly index: PageFile;
  /** By name; the names contain a digest of the content. */
  readonly assets: ReadonlyMap<string, PageFile>;
}
