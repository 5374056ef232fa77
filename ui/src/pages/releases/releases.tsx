/** The page of releases. */

import { Page } from '../../components/page.tsx';

export default function Releases() {
  return <Page title="Releases">{null}</Page>;
}
