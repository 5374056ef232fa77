/**
 * Hand-written pages have regions that are generated:
 *
 *     <!-- generated: functions -->
 *     <!-- /generated -->
 */

const REGION = /<!-- generated: (\S+) -->\n[\s\S]*?<!-- \/generated -->/g;

/** What stands in the regions of one page, by their names. */
export type Regions = Readonly<Record<string, string>>;

/**
 * The page with its regions written anew; all else stays as it is.
 * @throws Error when a region has nothing to show, or what is generated has no region
 */
export function fillRegions(page: string, regions: Regions): string {
  const left = new Set(Object.keys(regions));
  const filled = page.replace(REGION, (_, name: string) => {
    if (!left.delete(name)) throw new Error(`nothing is generated for the region ${name}`);
    return `<!-- generated: ${name} -->\n\n${regions[name]}\n\n<!-- /generated -->`;
  });
  if (left.size > 0) throw new Error(`there is no region for ${[...left].join(', ')}`);
  return filled;
}
