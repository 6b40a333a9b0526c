------------------------------ MODULE Protocol ------------------------------
(***************************************************************************)
(* How a controller, the initiator of the trials and a peer agree on which *)
(* attempt is made, when its window opens, and what it came to.            *)
(*                                                                         *)
(* Calls of the controller come over TLS: they are lost, late or doubled,  *)
(* and nobody else makes them.  GO and its answers go over the air: nobody *)
(* forges them, and everybody hears them and sends them again.  So what    *)
(* was sent is never taken out of the sets gos, acks and calls, and any of *)
(* it may arrive at any time, never, or again.  Time is not modelled: what *)
(* has a deadline may happen at any moment.                                *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
  TrialOf,    \* the trial of each attempt, in the order of the schedule
  Crashes,    \* how often an agent ends at any moment
  Exits,      \* how often the controller does
  Cuts,       \* how often a lease runs out although its controller runs
  Exchanges,  \* how many exchanges of GO the initiator begins
  Challenges  \* how many challenges the peer gives

\* What TrialOf may be.
OneAttempt == <<1>>
OneTrialTwice == <<1, 1>>
TwoTrials == <<1, 2>>

Nodes == {"a", "b"}
Initiator == "a"
Peer == "b"
Keys == DOMAIN TrialOf

\* The life of an attempt on a node: the only steps of its state.
\* This table is also read by the checker of traces.
Steps == {
  <<"none", "loaded">>,
  <<"loaded", "armed">>,
  <<"loaded", "restoring">>,
  <<"armed", "running">>,
  <<"armed", "restoring">>,
  <<"running", "restoring">>,
  <<"restoring", "kept">>
}

\* The steps that the start of an agent makes for an attempt which its former life left.
RestartSteps == {
  <<"loaded", "kept">>,
  <<"armed", "kept">>,
  <<"running", "kept">>,
  <<"restoring", "kept">>
}

Busy == {"loaded", "armed", "running", "restoring"}

VARIABLES
  up,         \* whether the agent runs
  at,         \* the state of each attempt on each node
  result,     \* what the attempt that is being restored came to
  verdict,    \* on disk: what each node knows of each attempt
  final,      \* on disk: of which attempts that is the controller's word
  life,       \* on disk: of the run on each node: "loaded", "begun" or "ended"
  changes,    \* on disk: what is to be undone, of the "run" and of the "trial"
  lease,      \* whether the controller has the node's lease
  challenge,  \* the peer's, 0 for none
  given,      \* how many challenges the peer has given
  exchange,   \* the initiator's exchange of GO
  begun,      \* how many it has begun
  gos, acks, calls, \* what was sent
  controller, \* "on", "off" or "over"
  key,        \* the attempt that the controller is at, 0 for none
  calledOff,  \* whether it has given that attempt up
  decided,    \* on disk: the controller's journal
  crashes, exits, cuts, \* how often each has happened
  \* Below is what only an observer knows.
  right,      \* by which right each node takes part in its attempt
  opened,     \* how often each node has obeyed a GO of each attempt
  answered,   \* the challenges that were answered
  twice       \* whether one counted twice

node == <<up, at, result, verdict, final, life, changes, lease>>
air == <<challenge, given, exchange, begun, gos, acks>>
control == <<calls, controller, key, calledOff, decided>>
budget == <<crashes, exits, cuts>>
seen == <<right, opened, answered, twice>>
vars == <<node, air, control, budget, seen>>

NoExchange == [x |-> 0, kind |-> "none", acked |-> FALSE]

Init ==
  /\ up = [n \in Nodes |-> TRUE]
  /\ at = [n \in Nodes |-> [k \in Keys |-> "none"]]
  /\ result = [n \in Nodes |-> "none"]
  /\ verdict = [n \in Nodes |-> [k \in Keys |-> "none"]]
  /\ final = [n \in Nodes |-> {}]
  /\ life = [n \in Nodes |-> "loaded"]
  /\ changes = [n \in Nodes |-> {}]
  /\ lease = [n \in Nodes |-> FALSE]
  /\ challenge = 0 /\ given = 0
  /\ exchange = NoExchange /\ begun = 0
  /\ gos = {} /\ acks = {} /\ calls = {}
  /\ controller = "on" /\ key = 0 /\ calledOff = FALSE
  /\ decided = [k \in Keys |-> "none"]
  /\ crashes = 0 /\ exits = 0 /\ cuts = 0
  /\ right = [n \in Nodes |-> "none"]
  /\ opened = [n \in Nodes |-> [k \in Keys |-> 0]]
  /\ answered = {} /\ twice = FALSE

UnderWay(n) == {k \in Keys : at[n][k] \in Busy}
Idle(n) == UnderWay(n) = {}

\* The attempts that are still to be made by what somebody knows of all of them.
Left(v) == {k \in Keys : v[k] = "none" /\ \A j \in Keys : TrialOf[j] = TrialOf[k] => v[j] # "accepted"}
Next1(v) == CHOOSE k \in Left(v) : \A j \in Left(v) : k <= j

\* ---- What a node does to an attempt ----

Admit(n, k, by) ==
  /\ Idle(n)
  /\ verdict[n][k] = "none"
  /\ at' = [at EXCEPT ![n][k] = "loaded"]
  /\ life' = [life EXCEPT ![n] = "begun"]
  /\ changes' = [changes EXCEPT ![n] = {"run", "trial"}]
  /\ right' = [right EXCEPT ![n] = by]

\* An attempt that ends before its window has been measured.
Fail(n, k) ==
  /\ at' = [at EXCEPT ![n][k] = "restoring"]
  /\ result' = [result EXCEPT ![n] = "failed"]

EndOfExchange(n) == exchange' = IF n = Initiator THEN NoExchange ELSE exchange

Prepare(n, k) ==
  /\ up[n] /\ at[n][k] = "loaded"
  /\ \/ at' = [at EXCEPT ![n][k] = "armed"] /\ UNCHANGED result
     \/ Fail(n, k)
  /\ UNCHANGED <<up, verdict, final, life, changes, lease, air, control, budget, seen>>

\* The gate stays shut, GO does not come, or it is not answered.
GiveUp(n, k) ==
  /\ up[n] /\ at[n][k] = "armed"
  /\ Fail(n, k)
  /\ EndOfExchange(n)
  /\ UNCHANGED <<up, verdict, final, life, changes, lease, challenge, given, begun, gos, acks, control, budget, seen>>

Close(n, k) ==
  /\ up[n] /\ at[n][k] = "running"
  /\ at' = [at EXCEPT ![n][k] = "restoring"]
  /\ \E o \in {"accepted", "failed"} : result' = [result EXCEPT ![n] = o]
  /\ EndOfExchange(n)
  /\ UNCHANGED <<up, verdict, final, life, changes, lease, challenge, given, begun, gos, acks, control, budget, seen>>

Provisional(n, k, o) ==
  verdict' = IF k \in final[n] THEN verdict ELSE [verdict EXCEPT ![n][k] = o]

Keep(n, k) ==
  /\ up[n] /\ at[n][k] = "restoring"
  /\ at' = [at EXCEPT ![n][k] = "kept"]
  /\ changes' = [changes EXCEPT ![n] = @ \ {"trial"}]
  /\ Provisional(n, k, result[n])
  /\ result' = [result EXCEPT ![n] = "none"]
  /\ right' = [right EXCEPT ![n] = "none"]
  /\ UNCHANGED <<up, final, life, lease, air, control, budget, opened, answered, twice>>

\* ---- The machine is put back ----

Undo(n) ==
  /\ up[n] /\ Idle(n) /\ changes[n] # {}
  /\ life[n] = "ended"
  /\ changes' = [changes EXCEPT ![n] = {}]
  /\ UNCHANGED <<up, at, result, verdict, final, life, lease, air, control, budget, seen>>

DeadMan(n) ==
  /\ up[n] /\ Idle(n) /\ changes[n] # {}
  /\ ~lease[n]
  /\ changes' = [changes EXCEPT ![n] = {}]
  /\ UNCHANGED <<up, at, result, verdict, final, life, lease, air, control, budget, seen>>

Crash(n) ==
  /\ up[n] /\ crashes < Crashes
  /\ crashes' = crashes + 1
  /\ up' = [up EXCEPT ![n] = FALSE]
  /\ lease' = [lease EXCEPT ![n] = FALSE]
  /\ challenge' = IF n = Peer THEN 0 ELSE challenge
  /\ EndOfExchange(n)
  /\ UNCHANGED <<at, result, verdict, final, life, changes, given, begun, gos, acks, control, exits, cuts, seen>>

Restart(n) ==
  /\ ~up[n]
  /\ up' = [up EXCEPT ![n] = TRUE]
  /\ at' = [at EXCEPT ![n] = [k \in Keys |-> IF @[k] \in Busy THEN "kept" ELSE @[k]]]
  /\ verdict' = [verdict EXCEPT ![n] =
       [k \in Keys |-> IF at[n][k] \in Busy /\ k \notin final[n] THEN "failed" ELSE @[k]]]
  /\ changes' = [changes EXCEPT ![n] = {}]
  /\ result' = [result EXCEPT ![n] = "none"]
  /\ right' = [right EXCEPT ![n] = "none"]
  /\ UNCHANGED <<final, life, lease, air, control, budget, opened, answered, twice>>

\* ---- The controller's calls, as they arrive ----

Call(op, n) == {c \in calls : c.op = op /\ c.node = n}

CalledToArm(n) == \E c \in Call("arm", n) :
  /\ up[n]
  /\ lease[n]
  /\ Admit(n, c.key, IF lease[n] THEN "lease" ELSE "nothing")
  /\ UNCHANGED <<up, result, verdict, final, lease, air, control, budget, opened, answered, twice>>

CalledToAbort(n) == \E c \in Call("abort", n) :
  /\ up[n]
  /\ at[n][c.key] \in {"loaded", "armed", "running"}
  /\ Fail(n, c.key)
  /\ EndOfExchange(n)
  /\ UNCHANGED <<up, verdict, final, life, changes, lease, challenge, given, begun, gos, acks, control, budget, seen>>

Told(n) == \E c \in Call("tell", n) :
  /\ up[n]
  /\ lease[n]
  /\ verdict' = [verdict EXCEPT ![n][c.key] = c.outcome]
  /\ final' = [final EXCEPT ![n] = @ \union {c.key}]
  /\ UNCHANGED <<up, at, result, life, changes, lease, air, control, budget, seen>>

ToldOfTheEnd(n) == \E c \in Call("end", n) :
  /\ up[n]
  /\ lease[n]
  /\ life' = [life EXCEPT ![n] = "ended"]
  /\ at' = [at EXCEPT ![n] = [k \in Keys |-> IF @[k] \in Busy THEN "restoring" ELSE @[k]]]
  /\ result' = IF UnderWay(n) \cap {k \in Keys : at[n][k] # "restoring"} = {} THEN result
               ELSE [result EXCEPT ![n] = "failed"]
  /\ EndOfExchange(n)
  /\ UNCHANGED <<up, verdict, final, changes, lease, challenge, given, begun, gos, acks, control, budget, seen>>

\* ---- GO ----

\* Without a controller the initiator goes on by itself.
GoesOnAlone ==
  LET n == Initiator IN
  /\ up[n] /\ life[n] = "begun"
  /\ ~lease[n]
  /\ Left(verdict[n]) # {}
  /\ Admit(n, Next1(verdict[n]), IF life[n] = "begun" /\ ~lease[n] THEN "alone" ELSE "nothing")
  /\ UNCHANGED <<up, result, verdict, final, lease, air, control, budget, opened, answered, twice>>

Send(kind, k, x, answer) ==
  gos' = gos \union {[kind |-> kind, to |-> Peer, key |-> k, x |-> x, answer |-> answer]}

\* Where no controller has armed the peer, GO's twin does; then GO itself is exchanged.
BeginExchange == \E k \in Keys :
  LET ready == lease[Initiator] \/ (exchange.kind = "arm" /\ exchange.acked)
      kind == IF ready THEN "go" ELSE "arm"
  IN
  /\ up[Initiator] /\ at[Initiator][k] = "armed"
  /\ exchange.x = 0 \/ (exchange.kind = "arm" /\ exchange.acked)
  /\ begun < Exchanges
  /\ begun' = begun + 1
  /\ exchange' = [x |-> begun + 1, kind |-> kind, acked |-> FALSE]
  /\ Send(kind, k, begun + 1, 0)
  /\ UNCHANGED <<node, challenge, given, acks, control, budget, seen>>

Answer(g, ok, c) ==
  acks' = acks \union {[of |-> g.kind, key |-> g.key, x |-> g.x, ok |-> ok, challenge |-> c]}

\* A GO opens the window of an attempt that is armed; one that is repeated changes nothing.
Obey(n, g) ==
  /\ at' = [at EXCEPT ![n][g.key] = "running"]
  /\ opened' = [opened EXCEPT ![n][g.key] = IF at[n][g.key] = "armed" THEN @ + 1 ELSE @]
  /\ Answer(g, TRUE, 0)
  /\ UNCHANGED <<up, result, verdict, final, life, changes, lease, challenge, given, exchange, begun, gos, control,
                 budget, right, answered, twice>>

AnswerOnly(g, ok) ==
  /\ Answer(g, ok, 0)
  /\ UNCHANGED <<node, challenge, given, exchange, begun, gos, control, budget, seen>>

IsNew(g) == challenge # 0 /\ g.answer = challenge

Spend(g) ==
  /\ challenge' = 0
  /\ answered' = answered \union {g.answer}
  /\ twice' = (twice \/ g.answer \in answered)

\* A GO that would arm, or end what the node does, has to answer its challenge.
Challenged(g) ==
  /\ ~IsNew(g)
  /\ IF challenge # 0 THEN UNCHANGED <<challenge, given>>
     ELSE given < Challenges /\ given' = given + 1 /\ challenge' = given + 1
  /\ Answer(g, TRUE, challenge')
  /\ UNCHANGED <<node, exchange, begun, gos, control, budget, seen>>

ArmByGo(n, g) ==
  /\ IsNew(g)
  /\ Admit(n, g.key, IF IsNew(g) THEN "new" ELSE "nothing")
  /\ Spend(g)
  /\ UNCHANGED <<up, result, verdict, final, lease, given, exchange, begun, gos, acks, control, budget, opened>>

GiveWay(n, g) ==
  /\ IsNew(g)
  /\ \E k \in UnderWay(n) :
       IF at[n][k] = "armed" \/ (at[n][k] = "running" /\ g.key > k) THEN Fail(n, k) ELSE UNCHANGED <<at, result>>
  /\ Spend(g)
  /\ UNCHANGED <<up, verdict, final, life, changes, lease, given, exchange, begun, gos, acks, control, budget, right,
                 opened>>

HearGo(n) == \E g \in gos :
  /\ up[n]
  /\ g.to = n
  /\ IF life[n] = "ended" THEN AnswerOnly(g, FALSE)
     ELSE IF at[n][g.key] \in {"armed", "running"} /\ g.kind = "go" THEN Obey(n, g)
     ELSE IF at[n][g.key] \in {"armed", "running"} THEN AnswerOnly(g, TRUE)
     ELSE IF at[n][g.key] = "restoring" \/ verdict[n][g.key] # "none" THEN AnswerOnly(g, FALSE)
     ELSE IF at[n][g.key] = "loaded" THEN FALSE \* it answers when it is armed
     ELSE \/ Challenged(g)
          \/ Idle(n) /\ ArmByGo(n, g)
          \/ ~Idle(n) /\ GiveWay(n, g)

HearAnswer == \E k \in Keys : \E m \in acks :
  /\ up[Initiator] /\ at[Initiator][k] = "armed" /\ exchange.x # 0
  /\ m.of = exchange.kind
  /\ m.x = exchange.x
  /\ IF ~m.ok THEN /\ Fail(Initiator, k) /\ exchange' = NoExchange
                   /\ UNCHANGED gos
     ELSE IF m.challenge # 0 THEN /\ Send(exchange.kind, k, exchange.x, m.challenge)
                                  /\ UNCHANGED <<at, result, exchange>>
     ELSE /\ exchange' = [exchange EXCEPT !.acked = TRUE]
          /\ UNCHANGED <<at, result, gos>>
  /\ UNCHANGED <<up, verdict, final, life, changes, lease, challenge, given, begun, acks, control, budget, seen>>

\* The initiator opens its window when everybody has answered.
Open == \E k \in Keys :
  /\ up[Initiator] /\ at[Initiator][k] = "armed"
  /\ exchange.kind = "go" /\ exchange.acked
  /\ at' = [at EXCEPT ![Initiator][k] = "running"]
  /\ opened' = [opened EXCEPT ![Initiator][k] = @ + 1]
  /\ UNCHANGED <<up, result, verdict, final, life, changes, lease, air, control, budget, right, answered, twice>>

\* ---- The controller ----

TakeLease(n) ==
  /\ controller = "on" /\ up[n] /\ ~lease[n]
  /\ lease' = [lease EXCEPT ![n] = TRUE]
  \* It gives the plan again, by which a run that had ended is taken up.
  /\ life' = IF life[n] = "ended" /\ Left(decided) # {} THEN [life EXCEPT ![n] = "loaded"] ELSE life
  /\ UNCHANGED <<up, at, result, verdict, final, changes, air, control, budget, seen>>

LeaseEnds(n) ==
  /\ lease[n] /\ controller = "off"
  /\ lease' = [lease EXCEPT ![n] = FALSE]
  /\ UNCHANGED <<up, at, result, verdict, final, life, changes, air, control, budget, seen>>

Cut(n) ==
  /\ lease[n] /\ controller = "on" /\ cuts < Cuts
  /\ cuts' = cuts + 1
  /\ lease' = [lease EXCEPT ![n] = FALSE]
  /\ UNCHANGED <<up, at, result, verdict, final, life, changes, air, control, crashes, exits, seen>>

Exit ==
  /\ controller = "on" /\ exits < Exits
  /\ exits' = exits + 1
  /\ controller' = "off" /\ key' = 0 /\ calledOff' = FALSE
  /\ UNCHANGED <<node, air, calls, decided, crashes, cuts, seen>>

Resume ==
  /\ controller = "off"
  /\ controller' = "on"
  /\ UNCHANGED <<node, air, calls, key, calledOff, decided, budget, seen>>

ToAll(op, k, o) == {[op |-> op, node |-> n, key |-> k, outcome |-> o] : n \in Nodes}

Choose1 ==
  /\ controller = "on" /\ key = 0 /\ Left(decided) # {}
  /\ \A n \in Nodes : lease[n]
  /\ key' = Next1(decided)
  /\ calledOff' = FALSE
  /\ calls' = calls \union ToAll("arm", key', "none")
  /\ UNCHANGED <<node, air, controller, decided, budget, seen>>

CallOff ==
  /\ controller = "on" /\ key # 0 /\ ~calledOff
  /\ calledOff' = TRUE
  /\ calls' = calls \union ToAll("abort", key, "none")
  /\ UNCHANGED <<node, air, controller, key, decided, budget, seen>>

Measured(k) == \A n \in Nodes : at[n][k] = "kept" /\ verdict[n][k] = "accepted"

\* Whether a window is accepted is for the judge; that it was measured by all is not. What was called
\* off and not measured by all is "off", without a judge.
Decide ==
  /\ controller = "on" /\ key # 0
  /\ \A n \in Nodes : up[n] /\ at[n][key] \notin Busy
  /\ calledOff \/ \A n \in Nodes : verdict[n][key] # "none"
  /\ \E o \in IF calledOff /\ ~Measured(key) THEN {"off"} ELSE {"accepted", "failed"} :
       /\ o = "accepted" => Measured(key)
       /\ decided' = [decided EXCEPT ![key] = o]
       /\ calls' = calls \union ToAll("tell", key, o)
  /\ key' = 0
  /\ calledOff' = FALSE
  /\ UNCHANGED <<node, air, controller, budget, seen>>

EndRun ==
  /\ controller = "on" /\ key = 0 /\ Left(decided) = {}
  /\ calls' = calls \union ToAll("end", 1, "none")
  /\ UNCHANGED <<node, air, controller, key, calledOff, decided, budget, seen>>

Over ==
  /\ controller = "on" /\ key = 0 /\ Left(decided) = {}
  /\ \A n \in Nodes : life[n] = "ended" /\ Idle(n)
  /\ controller' = "over"
  /\ lease' = [n \in Nodes |-> FALSE]
  /\ UNCHANGED <<up, at, result, verdict, final, life, changes, air, calls, key, calledOff, decided, budget, seen>>

\* ---- All together ----

Next ==
  \/ \E n \in Nodes :
       \/ \E k \in Keys : Prepare(n, k) \/ GiveUp(n, k) \/ Close(n, k) \/ Keep(n, k)
       \/ Undo(n) \/ DeadMan(n) \/ Crash(n) \/ Restart(n)
       \/ CalledToArm(n) \/ CalledToAbort(n) \/ Told(n) \/ ToldOfTheEnd(n)
       \/ HearGo(n)
       \/ TakeLease(n) \/ LeaseEnds(n) \/ Cut(n)
  \/ GoesOnAlone \/ BeginExchange \/ HearAnswer \/ Open
  \/ Exit \/ Resume \/ Choose1 \/ CallOff \/ Decide \/ EndRun \/ Over

\* A node's own deadlines pass, an agent that ended is started again, and a controller that
\* runs goes on. That one which ended comes back is not assumed, nor that anything arrives
\* but its lease and the end of the run.
Fairness ==
  /\ \A n \in Nodes :
       /\ \A k \in Keys : WF_vars(Prepare(n, k)) /\ WF_vars(GiveUp(n, k)) /\ WF_vars(Close(n, k))
                          /\ WF_vars(Keep(n, k))
       /\ WF_vars(Undo(n)) /\ WF_vars(DeadMan(n)) /\ WF_vars(Restart(n))
       /\ WF_vars(TakeLease(n)) /\ WF_vars(LeaseEnds(n)) /\ WF_vars(ToldOfTheEnd(n))
  /\ WF_vars(Choose1) /\ WF_vars(CallOff) /\ WF_vars(Decide) /\ WF_vars(EndRun) /\ WF_vars(Over)

Spec == Init /\ [][Next]_vars /\ Fairness

\* ---- What always holds ----

OneAttemptAtATime == \A n \in Nodes : Cardinality(UnderWay(n)) <= 1

\* Armed under a lease, alone in a run that has begun, or by a GO that cannot be an old one.
ArmedByRight == \A n \in Nodes : ~Idle(n) => right[n] \in {"lease", "alone", "new"}

\* A peer runs after a GO to it of this attempt, and the initiator after its peer has obeyed one.
WindowsOpenByGo == \A k \in Keys :
  /\ at[Peer][k] = "running" => \E g \in gos : g.kind = "go" /\ g.to = Peer /\ g.key = k
  /\ opened[Initiator][k] > 0 => opened[Peer][k] > 0

OpenedOnce == \A n \in Nodes, k \in Keys : opened[n][k] <= 1
ChallengesCountOnce == ~twice

AcceptedOnce == \A j, k \in Keys :
  TrialOf[j] = TrialOf[k] /\ decided[j] = "accepted" /\ decided[k] = "accepted" => j = k

AcceptedWasMeasured == \A k \in Keys : decided[k] = "accepted" => \A n \in Nodes : opened[n][k] = 1

DecidedBeforeTold == \A n \in Nodes : \A k \in final[n] : decided[k] # "none" /\ verdict[n][k] = decided[k]

TrialIsUndone == \A n \in Nodes : up[n] /\ Idle(n) => "trial" \notin changes[n]
UndoIsOnDisk == \A n \in Nodes : ~Idle(n) => changes[n] = {"run", "trial"}

\* ---- What no step does ----

StepsAreOfTheTable == [][\A n \in Nodes, k \in Keys :
  at'[n][k] # at[n][k] =>
    <<at[n][k], at'[n][k]>> \in (IF up[n] THEN Steps ELSE RestartSteps)]_vars

\* What has ended, is known or is decided stays so.
OnlyRises == [][\A k \in Keys :
  /\ decided[k] # "none" => decided'[k] = decided[k]
  /\ \A n \in Nodes :
       /\ at[n][k] = "kept" => at'[n][k] = "kept"
       /\ verdict[n][k] # "none" => verdict'[n][k] # "none"
       /\ k \in final[n] => k \in final'[n] /\ verdict'[n][k] = verdict[n][k]]_vars

\* Whether calls were lost or not, what all nodes measured to its end is judged.
MeasuredIsJudged == [][\A k \in Keys : decided[k] = "none" /\ decided'[k] = "off" => ~Measured(k)]_vars

\* A run that has ended on a node is taken up by who has its lease, and by nobody else.
EndedStaysEnded == [][\A n \in Nodes : life[n] = "ended" /\ life'[n] # "ended" => lease'[n]]_vars

\* ---- What happens in the end ----

Restored == \A n \in Nodes : changes[n] # {} ~> changes[n] = {}
AttemptsEnd == \A n \in Nodes : ~Idle(n) ~> Idle(n)
=============================================================================
