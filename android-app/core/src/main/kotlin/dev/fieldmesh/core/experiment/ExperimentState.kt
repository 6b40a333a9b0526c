package dev.fieldmesh.core.experiment

import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.wire.Campaign
import dev.fieldmesh.core.wire.Choice
import dev.fieldmesh.core.wire.Need
import dev.fieldmesh.core.wire.Places
import dev.fieldmesh.core.wire.Planned
import dev.fieldmesh.core.wire.Preflight
import dev.fieldmesh.core.wire.Run
import dev.fieldmesh.core.wire.RunFile
import kotlinx.serialization.Serializable

/** Whether the controller is heard. */
enum class ControllerLink { CONNECTING, UP, LOST, WRONG_CONTROLLER, NOT_EXPERIMENTER }

/** What a person may want of a run. */
enum class Steer { START, PAUSE, RESUME, END }

/**
 * What a person wants of the run of a name, until the controller has answered; [choice] is what is started, and
 * [wishedS] when it was asked for, in seconds of the phone's clock.
 */
@Serializable
data class Wish(val steer: Steer, val run: String, val choice: Choice? = null, val wishedS: Long? = null)

/** Why a choice cannot be started now. */
enum class Hindrance { UNPLANNED, REFUSED, NODES_MISSING, UNCHECKED, UNREADY, RUN_UNDER_WAY, STARTING }

/** All that the screen for campaigns shows. */
data class ExperimentState(
    /** The controller that this phone is an experimenter's of; null: of none. */
    val controller: Pairing? = null,
    val link: ControllerLink = ControllerLink.CONNECTING,
    /** Null before the controller has told them. */
    val campaigns: List<Campaign>? = null,
    /** The campaign that a person looks at, as they want it. */
    val choice: Choice? = null,
    val planned: Planned? = null,
    /** The plan of the choice's scale as the campaign has it. */
    val own: Planned? = null,
    val isChecking: Boolean = false,
    /** Of the present choice. */
    val preflight: Preflight? = null,
    /** Whether that is of so long ago that nodes may have moved, or been started again, since. */
    val isCheckOld: Boolean = false,
    /** Newest first; null before the controller has told them. */
    val runs: List<Run>? = null,
    /** The run that a person looks at. */
    val opened: String? = null,
    val files: List<RunFile> = emptyList(),
    /** What it logged by place; null before the controller has told it. */
    val places: Places? = null,
    /** The file that is on its way. */
    val fetching: String? = null,
    /** What the controller has not answered yet. */
    val wishes: List<Wish> = emptyList(),
    /** Why what was asked for last was not done. */
    val refused: AgentException? = null,
) {
    val isExperimenter: Boolean get() = controller != null

    /** Whether a run or a campaign is looked at, from which there is a way back to the list. */
    val isInside: Boolean get() = opened != null || choice != null
    val campaign: Campaign? get() = choice?.let { c -> campaigns?.find { it.name == c.campaign } }
    val run: Run? get() = opened?.let { name -> runs?.find { it.name == name } }
    val underWay: Run? get() = runs?.find { it.phase == "running" }
    val starting: Wish? get() = wishes.find { it.steer == Steer.START }

    /** The speeds to choose from, and whether each is chosen. */
    val speeds: Map<Double, Boolean>
        get() {
            val offered = own?.speedsMps?.ifEmpty { null } ?: campaign?.speedsMps.orEmpty()
            val chosen = choice?.speedsMps ?: offered
            return (offered + chosen).distinct().sorted().associateWith(chosen::contains)
        }

    val repetitions: Int? get() = choice?.repetitions ?: own?.repetitions ?: planned?.repetitions
        ?: campaign?.repetitions

    /** What is in the way comes first. */
    val needs: List<Need> get() = preflight?.needs.orEmpty().sortedBy { ORDER.indexOf(it.outcome) }

    val hindrance: Hindrance?
        get() = when {
            starting != null -> Hindrance.STARTING
            campaign?.refused != null -> Hindrance.REFUSED
            campaign?.missing?.isNotEmpty() == true -> Hindrance.NODES_MISSING
            planned == null -> Hindrance.UNPLANNED
            underWay != null -> Hindrance.RUN_UNDER_WAY
            preflight == null -> Hindrance.UNCHECKED
            !preflight.ready -> Hindrance.UNREADY
            isCheckOld -> Hindrance.UNCHECKED
            else -> null
        }

    /** What was asked of a run last, and is not answered yet. */
    fun wish(run: String): Steer? = wishes.findLast { it.run == run }?.steer

    private companion object {
        val ORDER = listOf("unmet", "unknown", "met")
    }
}
