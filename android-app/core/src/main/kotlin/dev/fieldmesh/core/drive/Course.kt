package dev.fieldmesh.core.drive

import dev.fieldmesh.core.gps.Fix
import dev.fieldmesh.core.wire.Trial
import kotlin.math.PI
import kotlin.math.cos
import kotlin.math.sin

/** Metres east and north of a place; good to a per mille within 10 km. */
data class Metres(val east: Double, val north: Double)

private const val METRES_PER_DEGREE = 6_371_008.8 * PI / 180 // mean Earth radius, IUGG

fun metresFrom(originLatDeg: Double, originLonDeg: Double, latDeg: Double, lonDeg: Double) = Metres(
    east = (lonDeg - originLonDeg) * METRES_PER_DEGREE * cos(originLatDeg * PI / 180),
    north = (latDeg - originLatDeg) * METRES_PER_DEGREE,
)

/**
 * How far the car still has to go to the trial's gate, in metres along its
 * direction; negative behind it. Null when the gate is not a place, when the plan
 * does not say where the course lies, or when the car's place is unknown.
 */
fun distanceToGateM(trial: Trial, fix: Fix): Double? {
    val gate = trial.gate.placeM ?: return null
    val siteLat = trial.course.siteLatDeg ?: return null
    val siteLon = trial.course.siteLonDeg ?: return null
    if (!fix.hasPosition) return null
    val car = metresFrom(siteLat, siteLon, fix.latDeg ?: return null, fix.lonDeg ?: return null)
    val heading = trial.course.headingDeg * PI / 180
    val along = car.east * sin(heading) + car.north * cos(heading)
    return if (trial.direction == "inbound") along - gate else gate - along
}

/**
 * Whether a car on this track drives against its direction of travel, which the node's gate does not take for the
 * right speed, where the gate waits for the start and the road's bearing is known (node-agent/trial/gate). A car that
 * departs from the roadside node to either side is known to come back by its place, and a node tells that in words.
 */
fun isTurned(trial: Trial, trackDeg: Double): Boolean {
    if (!trial.gate.atStart || trial.gate.placeM == null && trial.course.kind == "depart") return false
    val along = cos((trackDeg - trial.course.headingDeg) * PI / 180)
    return if (trial.direction == "inbound") along > 0 else along < 0
}
