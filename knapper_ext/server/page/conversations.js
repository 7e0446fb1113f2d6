// The conversations of an agent: where they are kept, and their list.
import { part, useChanged, useLoaded } from "./kit.js";

export const MAIN = "main";
export const conversationsOf = (agent) => `/agents/${part(agent)}/conversations`;

// It is read again when something was said, and when this page changes one.
export function useConversations(agent, beat) {
  const [listed, lost, again] = useLoaded(conversationsOf(agent), `${beat}/${useChanged("conversations")}`);
  return [listed && listed.conversations, lost, again];
}
