/** The page of approvals. */

import { Page } from '../../components/page.tsx';

export default function Approvals() {
  return <Page title="Approvals">{null}</Page>;
}
