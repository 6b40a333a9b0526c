package dev.fieldmesh.core

import dev.fieldmesh.core.wire.Acceptance
import dev.fieldmesh.core.wire.CampaignView
import dev.fieldmesh.core.wire.Course
import dev.fieldmesh.core.wire.Gate
import dev.fieldmesh.core.wire.Live
import dev.fieldmesh.core.wire.NodeStatus
import dev.fieldmesh.core.wire.Radio
import dev.fieldmesh.core.wire.Routing
import dev.fieldmesh.core.wire.Schedule
import dev.fieldmesh.core.wire.SpoolPosition
import dev.fieldmesh.core.wire.TcpProfile
import dev.fieldmesh.core.wire.Trial
import dev.fieldmesh.core.wire.TrialKey
import dev.fieldmesh.core.wire.TrialView
import dev.fieldmesh.core.wire.Verdict
import dev.fieldmesh.core.wire.WireJson
import java.io.File

fun trial(number: Int, speed: Double? = 13.9, placeM: Double? = 20.0, direction: String = "outbound") = Trial(
    number = number, block = 1,
    factors = mapOf(
        "speed_mps" to "$speed",
    ),
    car = "car", roadside = "roadside",
    receiver = "roadside", speedMps = speed, direction = direction,
    course = Course(
        "depart",
        accelMps2 = 1.8,
        brakeMps2 = 2.5,
        siteLatDeg = 0.0,
        siteLonDeg = 0.0,
        headingDeg = 90.0,
    ),
    gate = Gate(holdS = 1.0, placeM = placeM), durationS = 10.0,
    radio = Radio(
        "adhoc",
    ),
    routing = Routing("static"), tcp = TcpProfile("reno"), acceptance = Acceptance(speedBandMps = 0.5),
)

fun schedule(run: String = "run-1", trials: List<Trial> = listOf(trial(1), trial(2))) =
    Schedule(run, "velocity", 3, trials)

fun verdict(outcome: String, trial: Int = 1, attempt: Int = 1, reason: String? = null) =
    Verdict(trial, attempt, outcome, reason, isFinal = true)

fun sampleStatus(): NodeStatus =
    File(System.getProperty("fieldmesh.golden"), "body_node_status.json").readText().let(WireJson::decodeFromString)

private var versions = 0uL

fun view(
    state: String,
    key: TrialKey? = TrialKey(1, 1),
    verdicts: List<Verdict> = emptyList(),
    live: Live? = null,
    run: String = "run-1",
) = CampaignView(
    ++versions, run, "velocity", state, key, null,
    verdicts.groupBy { it.trial }.map { (n, list) -> TrialView(n, list) }, SpoolPosition("e", 1), live,
)
