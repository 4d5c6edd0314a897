/** What `GET /metrics` answers. */
export interface MetricsPage {
  /** Those of these names; all if there is none. */
  scrape(names: readonly string[]): Promise<{ readonly contentType: string; readonly text: string }>;
}
